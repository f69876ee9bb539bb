import type { Schema } from '../pipeline/route.js';

interface ComponentSchemas {
  /** Replaces every titled schema by a reference. @throws Error where two different schemas have one title */
  reference(this: void, schema: Schema): unknown;
  schemas(): Readonly<Record<string, unknown>>;
}

export function componentSchemas(): ComponentSchemas {
  const components = new Map<string, unknown>();
  const known = new Map<string, string>();
  const references = new Map<Schema, unknown>();

  function named(title: string, schema: Schema): unknown {
    const before = references.get(schema);
    if (before !== undefined) return before;
    const text = JSON.stringify(schema);
    const name = pascalCase(title);
    if ((known.get(name) ?? text) !== text) throw new Error(`two different schemas are called ${name}`);
    if (!known.has(name)) {
      known.set(name, text);
      components.set(name, inside(schema));
    }
    const reference = { $ref: `#/components/schemas/${name}` };
    references.set(schema, reference);
    return reference;
  }

  function shown(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(shown);
    if (typeof value !== 'object' || value === null) return value;
    const schema = value as Schema;
    return typeof schema['title'] === 'string' ? named(schema['title'], schema) : inside(schema);
  }

  /**
   * A schema with references inside. Keywords for validators (`x-…`) are left out; their messages are listed with the
   * route's errors.
   */
  function inside(schema: Schema): unknown {
    const within = Object.fromEntries(
      Object.entries(schema)
        .filter(([key]) => !key.startsWith('x-'))
        .map(([key, value]) => [
          key,
          MAPS.has(key) ? eachOf(value as Readonly<Record<string, unknown>>) : PLAIN.has(key) ? value : shown(value),
        ]),
    );
    const discriminator = discriminatorOf(schema);
    return discriminator === undefined ? within : { ...within, discriminator };
  }

  function eachOf(map: Readonly<Record<string, unknown>>): unknown {
    return Object.fromEntries(Object.entries(map).map(([name, schema]) => [name, shown(schema)]));
  }

  return {
    reference: shown,
    schemas: () => Object.fromEntries([...components].sort(([one], [other]) => (one < other ? -1 : 1))),
  };
}

/** Discriminator of `oneOf`: the field whose constant differs in every alternative; each alternative is titled. */
function discriminatorOf({ oneOf }: Schema): object | undefined {
  const alternatives = (oneOf ?? []) as readonly Schema[];
  const constantsOf = (name: string): unknown[] =>
    alternatives.map(
      ({ properties }) => (properties as Readonly<Record<string, Schema>> | undefined)?.[name]?.['const'],
    );
  const propertyName = Object.keys((alternatives[0]?.['properties'] ?? {}) as object).find((name) => {
    const constants = constantsOf(name);
    return constants.every((one) => typeof one === 'string') && new Set(constants).size === constants.length;
  });
  if (propertyName === undefined) return undefined;
  const names = alternatives.map(({ title }) => `#/components/schemas/${pascalCase(String(title))}`);
  return {
    propertyName,
    mapping: Object.fromEntries(constantsOf(propertyName).map((value, at) => [value, names[at]])),
  };
}

/** `refresh_token` becomes `RefreshToken`. */
export function pascalCase(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** Schema keywords whose value is an object with free names as keys. */
const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'dependentSchemas']);
/** Schema keywords whose values are plain data, not schemas. */
const PLAIN: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'example', 'examples', 'required', 'type']);
