// Measures cel-go as Kubernetes uses it: checked and optimised expressions over objects as maps.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"cel.dev/cel-go/cel"
	"google.golang.org/protobuf/types/known/structpb"
	k8sjson "sigs.k8s.io/json"
)

// The output for an expression.
type line struct {
	// The result for each row.
	Values    []any `json:"values"`
	CompileNS int64 `json:"compile_ns"`
	// The time to evaluate the expression for all rows.
	NS int64 `json:"ns"`
}

// Arguments: the file with the rows, then the expressions.
func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "which file has the rows?")
		os.Exit(1)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, expressions []string) error {
	rows, err := read(path)
	if err != nil {
		return err
	}
	env, err := cel.NewEnv(
		cel.Variable("metadata", cel.DynType),
		cel.Variable("spec", cel.DynType),
		cel.Variable("status", cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		// Checks the declarations once, rather than in each compilation.
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
	)
	if err != nil {
		return err
	}
	output := json.NewEncoder(os.Stdout)
	for _, expression := range expressions {
		line, err := measure(env, expression, rows)
		if err == nil {
			err = output.Encode(line)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", expression, err)
		}
	}
	return nil
}

// Reads the rows, one object in each line. Integers stay integers, as in Kubernetes.
func read(path string) ([]cel.Activation, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rows []cel.Activation
	for line := range bytes.Lines(text) {
		var object map[string]any
		if err := k8sjson.UnmarshalCaseSensitivePreserveInts(line, &object); err != nil {
			return nil, err
		}
		row, err := cel.NewActivation(object)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func measure(env *cel.Env, expression string, rows []cel.Activation) (line, error) {
	program, err := compile(env, expression)
	if err != nil {
		return line{}, err
	}
	values := make([]any, len(rows))
	for i, row := range rows {
		if values[i], err = evaluate(program, row); err != nil {
			return line{}, err
		}
	}
	return line{
		Values:    values,
		CompileNS: median(func() { _, _ = compile(env, expression) }),
		NS: median(func() {
			for _, row := range rows {
				_, _, _ = program.Eval(row)
			}
		}),
	}, nil
}

func compile(env *cel.Env, expression string) (cel.Program, error) {
	checked, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	return env.Program(checked, cel.EvalOptions(cel.OptOptimize))
}

// The result of the program as JSON.
func evaluate(program cel.Program, row cel.Activation) (any, error) {
	value, _, err := program.Eval(row)
	if err != nil {
		return nil, err
	}
	told, err := value.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, err
	}
	return told.(*structpb.Value).AsInterface(), nil
}
