package main

import (
	"regexp"
	"strings"

	"cel.dev/expr"
	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	"cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// Whether the case requires protobuf messages: its values or declarations have them, or its expression names a message,
// an enum or an extension.
func needsMessages(test *test.SimpleTest) bool {
	needs := namesMessage(test.GetExpr(), test.GetContainer())
	_ = protorange.Range(test.ProtoReflect(), func(path protopath.Values) error {
		message, ok := path.Index(-1).Value.Interface().(protoreflect.Message)
		if !ok {
			return nil
		}
		switch message := message.Interface().(type) {
		case *anypb.Any:
			needs = needs || !ownType(message.MessageName())
		case *expr.EnumValue:
			needs = true
		case *expr.Type:
			_, wrapper := message.GetTypeKind().(*expr.Type_Wrapper)
			name := protoreflect.FullName(message.GetMessageType())
			needs = needs || wrapper || message.GetWellKnown() == expr.Type_ANY || (name != "" && !ownType(name))
		}
		return nil
	})
	return needs
}

// Whether the type is built into CEL.
func ownType(name protoreflect.FullName) bool {
	return name == "google.protobuf.Timestamp" || name == "google.protobuf.Duration"
}

var (
	// Comments and strings: names in them do not count.
	words = regexp.MustCompile(`//[^\n]*|(?s:"""(\\.|[^\\])*?"""|'''(\\.|[^\\])*?'''|"(\\.|[^"\\])*"|'(\\.|[^'\\])*')`)
	path  = regexp.MustCompile(`[A-Za-z_]\w*(\s*\.\s*[A-Za-z_]\w*)*(\s*\{)?`)
)

// Whether the expression names a message, an enum, an enum value or an extension.
func namesMessage(expression, container string) bool {
	for _, name := range path.FindAllString(words.ReplaceAllString(expression, " "), -1) {
		name, built := strings.CutSuffix(name, "{")
		parts := strings.Split(strings.Join(strings.Fields(name), ""), ".")
		for end := range parts {
			if resolves(strings.Join(parts[:end+1], "."), container, built) {
				return true
			}
		}
	}
	return false
}

// Whether protobuf knows the name, in the container or in an enclosing one.
func resolves(name, container string, built bool) bool {
	for {
		full := protoreflect.FullName(strings.TrimPrefix(container+"."+name, "."))
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(full)
		if err == nil && (built || !ownType(full)) {
			switch found := found.(type) {
			case protoreflect.MessageDescriptor, protoreflect.EnumDescriptor, protoreflect.EnumValueDescriptor:
				return true
			case protoreflect.FieldDescriptor:
				return found.IsExtension()
			}
		}
		if container == "" {
			return false
		}
		container = container[:max(strings.LastIndex(container, "."), 0)]
	}
}
