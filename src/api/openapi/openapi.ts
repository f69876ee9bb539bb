import { ERRORS, type ErrorCode } from '../../domain/errors.js';
import { CODE_HEADER, FIELD_HEADER, retryAfterOf } from '../pipeline/errors.js';
import { bodyLimits } from '../pipeline/bodyLimits.js';
import { commonErrors } from '../pipeline/pipeline.js';
import {
  type Route,
  type Schema,
  type SuccessAnswer,
  isLimited,
  mustNotBeCached,
  takesKeys,
} from '../pipeline/route.js';
import { textSchema } from '../pipeline/schemas.js';
import { componentSchemas, pascalCase } from './schemas.js';
import { type DescribedWebhook, webhookItem } from './webhooks.js';
import { HEADERS, PARAMETERS, TAGS, overview, securitySchemes } from './texts.js';

export interface ApiInfo {
  readonly version: string;
  readonly publicUrl: string;
  /** URL of the described routes. Default: `publicUrl`, where tokens are issued. */
  readonly serverUrl?: string;
  /** Whether the service is a sandbox; default: it is none. */
  readonly sandbox?: boolean;
  /** Requests that the service makes, by name. */
  readonly webhooks?: Readonly<Record<string, DescribedWebhook>>;
}

type Json = Record<string, unknown>;

interface DescribedError {
  readonly code: ErrorCode;
  readonly status: number;
  /** The exact message, or an example where the message names a field or relation. */
  readonly message: string;
}

const takesKey = (route: Route): boolean => route.method !== 'GET' && takesKeys(route.path);

/** @throws Error for two operations of one name, or two different schemas of one title */
export function openApiDocument(routes: readonly Route[], info: ApiInfo): object {
  const components = componentSchemas();
  const paths: Record<string, Json> = {};
  const templates = new Map<string, string>();
  const names = new Set<string>();
  for (const route of routes) {
    const path = templateOf(route.path);
    // `/a/{id}` and `/a/{giftId}` are one path in OpenAPI: the first one's parameter names count.
    const shape = path.replaceAll(/\{\w+\}/g, '{}');
    const template = templates.get(shape) ?? path;
    templates.set(shape, template);
    if (names.has(route.operation)) throw new Error(`two routes are called ${route.operation}`);
    names.add(route.operation);
    const item = (paths[template] ??= {});
    item[route.method.toLowerCase()] = operation(route, parameterNames(template), components.reference);
  }
  const webhooks = Object.entries(info.webhooks ?? {}).map(([name, webhook]) => {
    if (names.has(webhook.operation)) throw new Error(`two operations are called ${webhook.operation}`);
    names.add(webhook.operation);
    return [name, webhookItem(webhook, components.reference)] as const;
  });
  const used = new Set(routes.map(({ tag }) => tag));
  const known = Object.entries(TAGS).filter(([name]) => used.has(name));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gift Commerce',
      version: info.version,
      summary: 'Sell, send, redeem and account for gifts.',
      description: overview(info.sandbox),
      contact: { name: 'Gift Commerce', url: info.publicUrl },
      license: { name: 'Not licensed to the public', identifier: 'LicenseRef-UNLICENSED' },
    },
    servers: [{ url: info.serverUrl ?? info.publicUrl }],
    tags: [
      ...known.map(([name, description]) => ({ name, description })),
      ...[...used].filter((name) => TAGS[name] === undefined).map((name) => ({ name })),
    ],
    paths,
    ...(webhooks.length === 0 ? {} : { webhooks: Object.fromEntries(webhooks) }),
    components: {
      schemas: { ...components.schemas(), Error: errorSchema },
      headers: HEADERS,
      parameters: PARAMETERS,
      securitySchemes: securitySchemes(info.publicUrl),
    },
  };
}

const errorSchema = {
  title: 'Error',
  type: 'object',
  additionalProperties: false,
  required: ['error'],
  properties: {
    error: textSchema('What is wrong, in words. The texts are part of the contract.'),
  },
};

function templateOf(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}

function parameterNames(template: string): string[] {
  return [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
}

type Reference = (schema: Schema) => unknown;

/** Titles a schema by its operation (`RedeemGiftAnswer`): otherwise each client generator invents a name. */
const named = (route: Route, what: string, schema: Schema): Schema =>
  schema['title'] === undefined ? { title: `${pascalCase(route.operation)}${what}`, ...schema } : schema;

function operation(route: Route, names: readonly string[], reference: Reference): Json {
  return {
    operationId: route.operation,
    tags: [route.tag],
    summary: route.summary,
    ...descriptionOf(route),
    security: securityOf(route),
    parameters: parametersOf(route, names, reference),
    ...(route.body === undefined ? {} : { requestBody: requestBody(route, route.body, reference) }),
    responses: responsesOf(route, reference),
  };
}

function descriptionOf({ description, roles }: Route): Json {
  const needed =
    roles === undefined ? [] : [`For users with the role ${roles.map((role) => `\`${role}\``).join(' or ')}.`];
  const said = [...(description === undefined ? [] : [description]), ...needed];
  return said.length === 0 ? {} : { description: said.join('\n\n') };
}

function securityOf({ caller, formBody }: Route): Json[] {
  if (formBody === true) return [{}, { client: [] }, { bearer: [] }];
  if (caller === 'none') return [{}];
  return caller === 'user' ? [{ bearer: [] }] : [{ bearer: [] }, { clientCredentials: [] }];
}

function parametersOf(route: Route, names: readonly string[], reference: Reference): Json[] {
  const own = parameterNames(templateOf(route.path));
  const inPath = names.map((name, index) => {
    const description = route.params?.[own[index] ?? ''];
    return {
      name,
      in: 'path',
      required: true,
      ...(description === undefined ? {} : { description }),
      schema: textSchema(),
    };
  });
  const properties = Object.entries((route.query?.['properties'] ?? {}) as Record<string, Schema>);
  const needed = (route.query?.['required'] ?? []) as readonly string[];
  const inQuery = properties.map(([name, property]) => {
    const { description, ...schema } = property;
    const list = schema['type'] === 'array';
    return {
      name: list ? `${name}[]` : name,
      in: 'query',
      required: needed.includes(name),
      ...(description === undefined ? {} : { description }),
      ...(list ? { style: 'form', explode: true } : {}),
      schema: schema['type'] === 'boolean' ? { ...schema, ...QUERY_BOOLEAN } : reference(schema),
    };
  });
  const embed = (route.embeds ?? []).length === 0 ? [] : [embedParameter(route, route.embeds ?? [], reference)];
  return [...inPath, ...inQuery, ...embed, ...headerParameters(route)];
}

/** Schema of a boolean in a query (docs/api/conventions.md#bodies-and-queries). */
const QUERY_BOOLEAN: Schema = { type: ['boolean', 'integer'], enum: [true, false, 1, 0] };

function embedParameter(route: Route, relations: readonly string[], reference: Reference): Json {
  return {
    name: 'embed[]',
    in: 'query',
    required: false,
    description: 'Relations to embed, repeatable. A dotted relation embeds every step of its path.',
    style: 'form',
    explode: true,
    schema: { type: 'array', items: reference(named(route, 'Embed', { type: 'string', enum: relations })) },
  };
}

function headerParameters(route: Route): Json[] {
  const names = ['RequestId'];
  if (takesKeys(route.path)) names.push('GiftPosition');
  if (takesKey(route)) names.push('IdempotencyKey');
  if (route.answers.some(({ status }) => status === 304)) names.push('IfNoneMatch');
  const shared = names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
  if (route.signature === undefined) return shared;
  const { header: name, description } = route.signature;
  return [{ name, in: 'header', required: true, description, schema: textSchema() }, ...shared];
}

function requestBody(route: Route, body: Schema, reference: Reference): Json {
  const media = {
    schema: reference(named(route, 'Body', body)),
    ...(route.bodyExample === undefined ? {} : { example: route.bodyExample }),
  };
  return {
    description: `At most ${bodyLimits(route, body).bytes} bytes.`,
    required: route.bodyOptional !== true,
    content: {
      'application/json': media,
      ...(route.formBody === true ? { 'application/x-www-form-urlencoded': media } : {}),
    },
  };
}

const header = (name: keyof typeof HEADERS): Json => ({ $ref: `#/components/headers/${name}` });

const ACCEPTED = Object.fromEntries(
  (['Accept', 'Accept-Patch', 'Accept-Encoding'] as const).map((name) => [name, header(name)]),
);

const LIMIT_HEADERS = { RateLimit: header('RateLimit'), 'RateLimit-Policy': header('RateLimitPolicy') };

const describedHeaders = (descriptions: Readonly<Record<string, string>> = {}): Json =>
  Object.fromEntries(
    Object.entries(descriptions).map(([name, description]) => [name, { description, schema: textSchema() }]),
  );

function everyAnswer(route: Route): Json {
  return {
    'X-Request-Id': header('RequestId'),
    ...(mustNotBeCached(route) ? { 'Cache-Control': header('CacheControl') } : {}),
    ...(isLimited(route) ? LIMIT_HEADERS : {}),
  };
}

function responsesOf(route: Route, reference: Reference): Json {
  const responses: Record<string, Json> = {};
  for (const answer of route.answers) responses[String(answer.status)] = success(route, answer, reference);
  const byStatus = new Map<number, DescribedError[]>();
  for (const error of describedErrors(route))
    byStatus.set(error.status, [...(byStatus.get(error.status) ?? []), error]);
  for (const [status, errors] of [...byStatus].sort(([one], [other]) => one - other))
    responses[String(status)] = failure(route, status, errors, reference);
  return responses;
}

function success(route: Route, answer: SuccessAnswer, reference: Reference): Json {
  const headers = everyAnswer(route);
  if (takesKey(route)) {
    headers['Gift-Position'] = header('GiftPosition');
    headers['Idempotent-Replayed'] = header('IdempotentReplayed');
  }
  Object.assign(headers, describedHeaders(answer.headers));
  if (answer.status === 304) return { description: answer.description, headers };
  const type = answer.contentType ?? 'application/json';
  const schema = answer.schema === undefined ? textSchema() : reference(named(route, 'Answer', answer.schema));
  return {
    description: answer.description,
    headers,
    content: {
      [type]: { schema, ...(answer.example === undefined ? {} : { example: answer.example }) },
      ...Object.fromEntries(
        Object.entries(answer.alsoJson ?? {}).map(([other, also]) => [
          other,
          { schema: reference(also.schema), example: also.example },
        ]),
      ),
      ...Object.fromEntries((answer.alsoAs ?? []).map((other) => [other, { schema: textSchema() }])),
    },
  };
}

function failure(route: Route, status: number, errors: readonly DescribedError[], reference: Reference): Json {
  const headers = everyAnswer(route);
  headers[CODE_HEADER] = codeHeader([...new Set(errors.map(({ code }) => code))]);
  if (status === 401) headers['WWW-Authenticate'] = header('WwwAuthenticate');
  if (status === 405) headers['Allow'] = header('Allow');
  if (status === 415) Object.assign(headers, ACCEPTED);
  if (status === 409 || errors.some(({ code }) => 'Retry-After' in retryAfterOf(code)))
    headers['Retry-After'] = header('RetryAfter');
  if (route.giftParam !== undefined && (status === 404 || status === 429)) Object.assign(headers, LIMIT_HEADERS);
  if (takesKey(route) && (status === 402 || status === 403 || status === 404 || status === 405 || status === 422)) {
    headers['Idempotent-Replayed'] = header('IdempotentReplayed');
  }
  if (errors.some(({ code }) => code === 'schema' || code === 'unknown_embed'))
    headers[FIELD_HEADER] = header('ErrorField');
  for (const { code } of errors) Object.assign(headers, describedHeaders(route.errorHeaders?.[code]));
  const examples: Json = {};
  for (const { code, message } of errors) {
    let name: string = code;
    for (let next = 2; examples[name] !== undefined; next++) name = `${code}_${next}`;
    examples[name] = { value: { error: message, ...route.errorFields?.[code]?.example } };
  }
  const fields = Object.assign(
    {},
    ...errors.map(({ code }) => route.errorFields?.[code]?.properties ?? {}),
  ) as Readonly<Record<string, Schema>>;
  const schema =
    Object.keys(fields).length === 0
      ? { $ref: '#/components/schemas/Error' }
      : reference({ ...errorSchema, title: `Error${status}`, properties: { ...errorSchema.properties, ...fields } });
  return {
    description: errors.map(({ message }) => `\`${message}\``).join(', '),
    headers,
    content: {
      'application/json': { schema, examples },
      ...(route.errorPage === undefined ? {} : { 'text/html': { schema: textSchema() } }),
    },
  };
}

const codeHeader = (codes: readonly ErrorCode[]): Json => ({
  description: 'Which error it is.',
  required: true,
  schema: { type: 'string', enum: codes },
  example: codes[0],
});

/** Errors of a route, including those of the steps, in the order of the error table. */
export function describedErrors(route: Route): DescribedError[] {
  const codes = new Set([...(route.errors ?? []), ...commonErrors(route)]);
  return (Object.keys(ERRORS) as ErrorCode[])
    .filter((code) => codes.has(code))
    .flatMap((code) => {
      const [status, message] = ERRORS[code];
      return (message === '' ? messagesOf(route, code) : [message]).map((text) => ({ code, status, message: text }));
    });
}

function messagesOf(route: Route, code: ErrorCode): string[] {
  if (code === 'unknown_embed') return ['Unknown embed: nonsense.'];
  if (code === 'projection_refused') return ['gifts: no previous build is kept, so there is nothing to go back to'];
  if (code === 'projection_busy') return ['gifts is being rebuilt by till-1:4711:0f3a5b7c: wait for it, or abort it'];
  const said = [...new Set([...schemaMessages(route.body), ...schemaMessages(route.query)])];
  return said.length > 0 ? said : [ruleOf(route)];
}

function schemaMessages(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key === 'x-message') return [String(value)];
    if (key === 'x-errors') return Object.values(value as Record<string, string>);
    return schemaMessages(value);
  });
}

function ruleOf(route: Route): string {
  const [needed] = (route.body?.['required'] ?? []) as readonly string[];
  if (needed !== undefined) return `${needed} is required`;
  if (route.body !== undefined) return 'colour is not a known field';
  const [name = 'page', property] =
    Object.entries((route.query?.['properties'] ?? {}) as Record<string, Schema>)[0] ?? [];
  return property?.['type'] === 'integer' ? `${name} must be a whole number` : `${name} must be given only once`;
}
