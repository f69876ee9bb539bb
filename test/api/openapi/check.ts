/** Holds answers against the API's description: what it doesn't say must not be sent. */
import addFormats from 'ajv-formats';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

type Json = Readonly<Record<string, unknown>>;

/** One operation of a description. */
export interface DescribedOperation {
  readonly method: string;
  /** As the description writes it: `/api/v2/gifts/{giftId}`. */
  readonly path: string;
  readonly operation: Json;
}

/** Every operation of a description. */
export function operationsOf(document: object): DescribedOperation[] {
  const { paths } = document as { readonly paths: Readonly<Record<string, Json>> };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation: operation as Json,
    })),
  );
}

/** What a part of a description stands for: what its `$ref` leads to, else itself. */
export function resolved<Part>(document: object, part: Part): Part {
  const { $ref } = part as { readonly $ref?: string };
  return $ref === undefined
    ? part
    : resolved(
        document,
        $ref
          .slice(2)
          .split('/')
          .reduce<unknown>((inner, key) => (inner as Json)[key], document) as Part,
      );
}

/** The relations that an operation's `embed[]` may name; none where it takes no such parameter. */
export function relationsOf(document: object, operation: Json): readonly string[] {
  const embed = (operation['parameters'] as readonly Json[]).find(({ name }) => name === 'embed[]') as
    { readonly schema: { readonly items: object } } | undefined;
  return embed === undefined
    ? []
    : (resolved(document, embed.schema.items) as { readonly enum: readonly string[] }).enum;
}

/** Validators of every schema in a description, by JSON pointer to it. */
function schemaAt(document: object): (pointer: string) => ValidateFunction {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, 'description');
  const compiled = new Map<string, ValidateFunction>();
  return (pointer) => {
    const known = compiled.get(pointer);
    if (known !== undefined) return known;
    const made = ajv.compile({ $ref: `description#${pointer}` });
    compiled.set(pointer, made);
    return made;
  };
}

const escaped = (key: string): string => encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'));

/**
 * What is wrong with a description beyond its form: references that lead nowhere, schemas that don't compile, examples
 * that break theirs.
 */
export function faultsOf(document: object): string[] {
  const validatorAt = schemaAt(document);
  const faults: string[] = [];
  const walk = (value: unknown, pointer: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const { $ref, schema, example, examples } = value as {
      $ref?: string;
      schema?: unknown;
      example?: unknown;
      examples?: Readonly<Record<string, { value: unknown }>>;
    };
    if (
      $ref !== undefined &&
      $ref
        .slice(2)
        .split('/')
        .reduce<unknown>((inner, key) => (inner as Json | undefined)?.[key], document) === undefined
    )
      faults.push(`${pointer}: ${$ref} leads nowhere`);
    if (typeof schema === 'object') {
      const validate = validatorAt(`${pointer}/schema`);
      const shown = [
        ...(example === undefined ? [] : [example]),
        ...Object.values(examples ?? {}).map((one) => one.value),
      ];
      for (const one of shown)
        if (!validate(one))
          faults.push(`${pointer}: ${JSON.stringify(one)} breaks its schema: ${JSON.stringify(validate.errors)}`);
    }
    for (const [key, inner] of Object.entries(value)) walk(inner, `${pointer}/${escaped(key)}`);
  };
  walk(document, '');
  return faults;
}

/** An answer as a test got it. */
export interface GivenAnswer {
  readonly method: string;
  /** The path that was asked for, with or without a query. */
  readonly path: string;
  readonly status: number;
  /** The parsed body of a JSON answer. */
  readonly body: unknown;
  /** JSON where absent. */
  readonly contentType?: string;
}

/** Tells what is wrong with an answer by this description; `undefined`: nothing. */
export function answerChecker(document: object): (answer: GivenAnswer) => string | undefined {
  const validatorAt = schemaAt(document);
  const operations = operationsOf(document).map((described) => ({ ...described, pattern: patternOf(described.path) }));
  return ({ method, path, status, body, contentType = 'application/json' }) => {
    const bare = path.replace(/\?.*$/, '').replace(/(.)\/$/, '$1');
    // A literal step goes before a parameter, as in the router.
    const candidates = operations
      .filter((one) => one.method === method && one.pattern.test(bare))
      .sort((one, other) => one.path.split('{').length - other.path.split('{').length);
    const found = candidates[0];
    if (found === undefined) return status === 404 || status === 405 ? undefined : `${method} ${bare} is not described`;
    const response = (found.operation['responses'] as Readonly<Record<string, Json>>)[String(status)];
    if (response === undefined) return `${method} ${found.path} does not describe ${status} (${JSON.stringify(body)})`;
    if (response['content'] === undefined || !('application/json' in (response['content'] as Json))) return undefined;
    const [type = ''] = contentType.split(';');
    if (type !== 'application/json')
      return type in (response['content'] as Json)
        ? undefined
        : `${method} ${found.path} does not describe ${status} as ${type}`;
    const validate = validatorAt(
      `/paths/${escaped(found.path)}/${method.toLowerCase()}/responses/${status}/content/application~1json/schema`,
    );
    if (validate(body)) return undefined;
    return `${method} ${found.path} ${status}: ${(validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`).join('; ')}`;
  };
}

function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}
