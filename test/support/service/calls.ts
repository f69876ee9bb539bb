/**
 * Calls routes as the pipeline does, without HTTP: query and embeds are read by the route's own description, answers
 * checked against it.
 */
import { parse } from 'node:querystring';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Principal } from '../../../src/api/pipeline/principal.js';
import { listParameter, readQuery } from '../../../src/api/pipeline/query.js';
import type { Call, EarlyCall, Route } from '../../../src/api/pipeline/route.js';
import { queryValidator } from '../../../src/api/pipeline/validation.js';

/** A signed-in user with this id. */
export function asUser(id: string): Principal {
  const user = {
    entry: 'user',
    id,
    username: id,
    password_hash: '',
    name: '',
    locale: null,
    phone_number: null,
    device_tokens: [],
    active: true,
    roles: [],
    merchant_id: null,
    permissions: [],
    credential: 0,
  } as const;
  return { kind: 'user', clientId: 'client', sessionId: 'session', user };
}

/** A client on its own behalf. */
const AS_CLIENT: Principal = { kind: 'client', clientId: 'client', sessionId: 'session' };

/** What is called. */
export interface Request {
  /** The query, without `?`. */
  readonly query?: string;
  readonly params?: Readonly<Record<string, string>>;
  /** A client when absent. */
  readonly as?: Principal;
}

/** The body that the route answers with 200, checked against its schema. */
export async function bodyOf(
  routes: readonly Route[],
  path: string,
  request: Request = {},
): Promise<Record<string, unknown>> {
  const route = routes.find((candidate) => candidate.path === path);
  if (route === undefined) throw new Error(`no route ${path}`);
  const rawQuery = request.query ?? '';
  const early: EarlyCall = {
    params: request.params ?? {},
    byShortcode: false,
    position: undefined,
    principal: request.as ?? AS_CLIENT,
    requestId: 'request',
    commandId: 'command',
    repeats: false,
    address: '127.0.0.1',
    path,
    rawQuery,
    left: new AbortController().signal,
    header: () => undefined,
    preferredType: () => undefined,
  };
  const handle = route.open === undefined ? route.handle : await route.open(early);
  const parsed = parse(rawQuery);
  const query = readQuery(parsed, route.query ?? {});
  if (route.query !== undefined) queryValidator(route.query)(query);
  const requested = route.embeds === undefined ? [] : listParameter(parsed, 'embed');
  const embeds = [
    ...new Set(
      requested.flatMap((relation) => relation.split('.').map((_, step, steps) => steps.slice(0, step + 1).join('.'))),
    ),
  ];
  const call: Call = { ...early, query, body: {}, bytes: Buffer.alloc(0), embeds };
  const { status = 200, body } = await handle(call);
  if (status !== 200) throw new Error(`answered ${status}`);
  checkAnswer(route, body);
  return body as Record<string, unknown>;
}

const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
addFormats.default(ajv);

/** Throws where a body breaks the schema of the route's answer; the example is checked too. */
function checkAnswer(route: Route, body: unknown): void {
  const [success] = route.answers;
  if (success?.schema === undefined) throw new Error(`${route.path} has no answer`);
  const validate = ajv.compile(success.schema);
  for (const value of [JSON.parse(JSON.stringify(body)), success.example]) {
    if (!validate(value)) throw new Error(`${route.path}: ${ajv.errorsText(validate.errors)}`);
  }
}
