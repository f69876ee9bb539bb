/**
 * What every validator is made with, beside its own options: no meta-schema. Ajv would hold a schema against it before
 * it compiles the first one, and compile it for that: 25 to 60 ms in which a process answers nobody. Our schemas are
 * constants, what is wrong with one fails its compiling (strict mode, types of keywords), and tests hold those that
 * callers see against the meta-schema.
 */
export const OWN_SCHEMAS = { meta: false, validateSchema: false } as const;
