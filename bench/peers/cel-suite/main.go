// Prints the cases of the CEL conformance suite as lines of JSON, for programs that cannot read protobuf's text format.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/prototext"
)

type line struct {
	File          string         `json:"file"`
	Section       string         `json:"section"`
	Name          string         `json:"name"`
	Expr          string         `json:"expr"`
	Container     string         `json:"container,omitempty"`
	DisableCheck  bool           `json:"disable_check,omitempty"`
	DisableMacros bool           `json:"disable_macros,omitempty"`
	Bindings      map[string]any `json:"bindings,omitempty"`
	// The declared names, with or without a value.
	Declared []string `json:"type_env_names,omitempty"`
	// "error", "typed", "unknown", or an object with "value".
	Expect any `json:"expect"`
	// Whether the case requires protobuf messages.
	Protobuf bool `json:"protobuf,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "cel.dev/expr").Output()
	if err != nil {
		return fmt.Errorf("cannot find the module of the suite: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), "tests/simple/testdata/*.textproto"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no suite in %s", module)
	}
	output := bufio.NewWriter(os.Stdout)
	for _, path := range files {
		if err := file(path, json.NewEncoder(output)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return output.Flush()
}

func file(path string, output *json.Encoder) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	suite := &test.SimpleTestFile{}
	if err := prototext.Unmarshal(text, suite); err != nil {
		return err
	}
	for _, section := range suite.GetSection() {
		for _, test := range section.GetTest() {
			line := read(test)
			line.File = strings.TrimSuffix(filepath.Base(path), ".textproto")
			line.Section = section.GetName()
			if err := output.Encode(line); err != nil {
				return err
			}
		}
	}
	return nil
}

func read(test *test.SimpleTest) line {
	line := line{
		Name:          test.GetName(),
		Expr:          test.GetExpr(),
		Container:     test.GetContainer(),
		DisableCheck:  test.GetDisableCheck(),
		DisableMacros: test.GetDisableMacros(),
		Bindings:      map[string]any{},
		Expect:        expected(test),
		Protobuf:      needsMessages(test),
	}
	for name, value := range test.GetBindings() {
		line.Bindings[name] = tag(value.GetValue())
	}
	for _, declared := range test.GetTypeEnv() {
		line.Declared = append(line.Declared, declared.GetName())
	}
	return line
}

func expected(simple *test.SimpleTest) any {
	if simple.GetCheckOnly() {
		return "typed"
	}
	switch matcher := simple.GetResultMatcher().(type) {
	case *test.SimpleTest_Value:
		return tagged{"value": tag(matcher.Value)}
	case *test.SimpleTest_TypedResult:
		return "typed"
	case *test.SimpleTest_EvalError, *test.SimpleTest_AnyEvalErrors:
		return "error"
	case *test.SimpleTest_Unknown, *test.SimpleTest_AnyUnknowns:
		return "unknown"
	default:
		// A case without a matcher expects true.
		return tagged{"value": tagged{"bool": true}}
	}
}
