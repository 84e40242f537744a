// Measures kstatus as its watchers use it: decoding into unstructured objects with client-go, then Compute.
package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"bellwether.dev/bench/measure"
)

func main() {
	measure.Files(measure.Check[*unstructured.Unstructured]{
		Decode: func(json []byte) (*unstructured.Unstructured, error) {
			object := &unstructured.Unstructured{}
			return object, object.UnmarshalJSON(json)
		},
		Assess: func(object *unstructured.Unstructured) (string, error) {
			result, err := status.Compute(object)
			if err != nil {
				return "", err
			}
			return result.Status.String(), nil
		},
	})
}
