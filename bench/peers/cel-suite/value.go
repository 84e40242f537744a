package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"cel.dev/expr"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

type tagged map[string]any

// A value tagged with its type; null has only the tag. Numbers are strings: JSON does not distinguish 1 from 1u and has
// no NaN.
func tag(value *expr.Value) any {
	switch kind := value.GetKind().(type) {
	case *expr.Value_NullValue:
		return "null"
	case *expr.Value_BoolValue:
		return tagged{"bool": kind.BoolValue}
	case *expr.Value_Int64Value:
		return tagged{"int": strconv.FormatInt(kind.Int64Value, 10)}
	case *expr.Value_Uint64Value:
		return tagged{"uint": strconv.FormatUint(kind.Uint64Value, 10)}
	case *expr.Value_DoubleValue:
		return tagged{"double": double(kind.DoubleValue)}
	case *expr.Value_StringValue:
		return tagged{"string": kind.StringValue}
	case *expr.Value_BytesValue:
		return tagged{"bytes": kind.BytesValue}
	case *expr.Value_ListValue:
		list := []any{}
		for _, item := range kind.ListValue.GetValues() {
			list = append(list, tag(item))
		}
		return tagged{"list": list}
	case *expr.Value_MapValue:
		entries := [][2]any{}
		for _, entry := range kind.MapValue.GetEntries() {
			entries = append(entries, [2]any{tag(entry.GetKey()), tag(entry.GetValue())})
		}
		return tagged{"map": entries}
	case *expr.Value_TypeValue:
		return tagged{"type": kind.TypeValue}
	case *expr.Value_EnumValue:
		return tagged{"message": kind.EnumValue.GetType()}
	case *expr.Value_ObjectValue:
		return object(kind.ObjectValue)
	default:
		return tagged{"message": "none"}
	}
}

// Two of the messages are values of CEL itself.
func object(object *anypb.Any) tagged {
	message, err := object.UnmarshalNew()
	if err != nil {
		return tagged{"message": string(object.MessageName())}
	}
	switch message := message.(type) {
	case *timestamppb.Timestamp:
		return tagged{"timestamp": message.AsTime().Format(time.RFC3339Nano)}
	case *durationpb.Duration:
		sign := ""
		if message.GetSeconds() < 0 || message.GetNanos() < 0 {
			sign = "-"
		}
		seconds := max(message.GetSeconds(), -message.GetSeconds())
		nanos := max(message.GetNanos(), -message.GetNanos())
		return tagged{"duration": fmt.Sprintf("%s%d.%09d", sign, seconds, nanos)}
	default:
		return tagged{"message": string(object.MessageName())}
	}
}

func double(number float64) string {
	switch {
	case math.IsInf(number, 1):
		return "inf"
	case math.IsInf(number, -1):
		return "-inf"
	default:
		return strconv.FormatFloat(number, 'g', -1, 64)
	}
}
