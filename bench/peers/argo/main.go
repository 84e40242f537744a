// Measures Argo CD's health checks that are written in Go, as its cluster cache uses them: decoding into unstructured
// objects with client-go, then GetResourceHealth.
package main

import (
	"github.com/argoproj/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bellwether.dev/bench/measure"
)

func main() {
	measure.Files(measure.Check[*unstructured.Unstructured]{
		Decode: func(json []byte) (*unstructured.Unstructured, error) {
			object := &unstructured.Unstructured{}
			return object, object.UnmarshalJSON(json)
		},
		Assess: func(object *unstructured.Unstructured) (string, error) {
			result, err := health.GetResourceHealth(object, nil)
			if err != nil || result == nil {
				return "", err
			}
			return string(result.Status), nil
		},
	})
}
