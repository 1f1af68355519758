// Crdcheck asks the code of a real API server about our CustomResourceDefinitions.
//
// It reads a folder that the export tool has written. Each CRD goes through what an API server does
// when it is created: strict decoding, defaulting, full validation (structural schema, CEL
// compilation, cost limits). Then each sample goes through what an API server does when an object is
// written: pruning, defaulting, schema validation, list types, CEL. The defaults, the verdict and the
// field that a refusal names must be those that the sample expects.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// A kind is what is left of a CRD once an API server has taken it.
type kind struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator
}

type sample struct {
	CRD       string         `json:"crd"`
	Patch     string         `json:"patch"`
	Accept    bool           `json:"accept"`
	Path      string         `json:"path"`
	Object    map[string]any `json:"object"`
	Old       map[string]any `json:"old"`
	Completed map[string]any `json:"completed"`
}

func loadKind(path string) (*kind, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	object, _, err := strict.Decode(text, nil, nil) // to the internal version, defaults included
	if err != nil {
		return nil, err
	}
	crd := object.(*apiextensions.CustomResourceDefinition)
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), crd); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}

	props, err := apiextensions.GetSchemaForVersion(crd, crd.Spec.Versions[0].Name)
	if err != nil {
		return nil, err
	}
	k := &kind{}
	if k.structural, err = schema.NewStructural(props.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	if k.validator, _, err = validation.NewSchemaValidator(props.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	k.cel = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
	return k, nil
}

// complete does to an object what happens to it before it is validated.
func (k *kind) complete(object map[string]any) {
	pruning.Prune(object, k.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.structural)
	defaulting.Default(object, k.structural)
}

func (k *kind) validate(object, old map[string]any) field.ErrorList {
	ctx := context.Background()
	errs := validation.ValidateCustomResource(nil, object, k.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	if len(errs) > 0 {
		return errs // CEL needs values of the right types
	}
	var before any
	if old != nil {
		before = old
	}
	found, _ := k.cel.Validate(ctx, nil, k.structural, object, before, celconfig.RuntimeCELCostBudget)
	return append(errs, found...)
}

// judge says how an API server differs from what the sample expects of it, or nothing.
func (k *kind) judge(s *sample) string {
	for _, object := range []map[string]any{s.Object, s.Old, s.Completed} {
		integers(object)
	}
	k.complete(s.Object)
	if s.Old != nil {
		k.complete(s.Old)
	}
	if s.Completed != nil && !reflect.DeepEqual(s.Object, s.Completed) {
		return fmt.Sprintf("expected the defaults\n  %v, found\n  %v", s.Completed, s.Object)
	}
	errs := k.validate(s.Object, s.Old)
	if (len(errs) == 0) != s.Accept {
		return fmt.Sprintf("expected accept=%v, found %v", s.Accept, errs.ToAggregate())
	}
	// Our ["key"] is .key in the words of an API server.
	path := strings.NewReplacer(`["`, ".", `"]`, "").Replace(s.Path)
	for _, err := range errs {
		if err.Field == path {
			return ""
		}
	}
	if s.Path != "" {
		return fmt.Sprintf("expected a problem with %s, found %v", path, errs.ToAggregate())
	}
	return ""
}

func run(folder string) (passed, failed int, err error) {
	kinds := map[string]*kind{}
	paths, err := filepath.Glob(filepath.Join(folder, "crd-*.json"))
	if err != nil {
		return 0, 0, err
	}
	for _, path := range paths {
		k, err := loadKind(path)
		if err != nil {
			fmt.Printf("%s is refused: %v\n", filepath.Base(path), err)
			failed++
			continue
		}
		kinds[filepath.Base(path)] = k
		passed++
	}

	file, err := os.Open(filepath.Join(folder, "samples.jsonl"))
	if err != nil {
		return passed, failed, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return passed, failed, err
		}
		k := kinds[s.CRD]
		if k == nil {
			continue
		}
		if wrong := k.judge(&s); wrong != "" {
			fmt.Printf("%s %s: %s\n", s.CRD, s.Patch, wrong)
			failed++
		} else {
			passed++
		}
	}
	return passed, failed, lines.Err()
}

// integers turns whole numbers into int64, as the API server's decoder does.
func integers(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for key := range t {
			t[key] = integers(t[key])
		}
	case []any:
		for i := range t {
			t[i] = integers(t[i])
		}
	case float64:
		if t == float64(int64(t)) {
			return int64(t)
		}
	}
	return v
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdcheck FOLDER")
		os.Exit(2)
	}
	passed, failed, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
