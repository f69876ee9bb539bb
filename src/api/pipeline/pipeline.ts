/**
 * What every route goes through, in the order of decisions 1: token, kind of caller, key and position, body's type,
 * size and syntax, replay, the entity and the caller's right to it, body and query, the handler. 404 and 405 of routes
 * come before, in `server.ts`.
 */
import type { ParsedUrlQuery } from 'node:querystring';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { shortened } from '../../lib/quotedText.js';
import type { Role } from '../../domain/account.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import type { Position } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { giftIdOf } from '../../domain/giftIds.js';
import type { Principal } from '../auth/principal.js';
import { readBody, readBytes } from './body.js';
import { callerLeft } from './callerLeft.js';
import { type ErrorCode, HttpError, answerOf } from './errors.js';
import { firstPiece } from '../ops/firstPiece.js';
import {
  type HeldKey,
  type KeyOwner,
  type StoredAnswer,
  bodyHashOf,
  idempotencyKey,
  keyedCommandId,
  randomCommandId,
  takeKey,
} from './idempotency.js';
import { hasLongList, jsonBody } from './json.js';
import { POSITION_HEADER, type PositionGate, waitUntilProjected } from './positions.js';
import { listParameter, parseQuery, readQuery, refuseUnknownParameters } from './query.js';
import { isKept, restsOnReadModels } from './repeats.js';
import type { RequestState } from './requestState.js';
import { type Answer, type Call, type Route, type RouteCaller, keptByNobody, takesKeys } from './route.js';
import type { RouteHandler } from './router.js';
import { sendJson, setCommonHeaders } from './send.js';
import { type Validator, bodyValidator, queryValidator } from './validation.js';

/** What the checks before a handler need. */
export interface PipelineDeps {
  /** Whom memory knows to send this header; `undefined`: `authenticate` must look. @throws HttpError 403 */
  recognise(authorization: string | undefined, need: RouteCaller): Principal | undefined;
  /** @throws HttpError 401, 403; UnavailableError */
  authenticate(authorization: string | undefined, need: RouteCaller): Promise<Principal>;
  /** The address that throttling counts a request by. */
  addressOf(ctx: Context): string;
  readonly records: Records;
  readonly hash: KeyedHash;
  /** Who holds idempotency keys; absent: nobody knows, and a request that died holds its key for 30 s. */
  readonly keys?: KeyOwner;
  readonly positions: PositionGate;
  /** Told of an answer that could not be kept for its idempotency key; the caller gets it all the same. */
  onUnkept(error: unknown, requestId: string): void;
}

interface Checks {
  readonly body: Validator | undefined;
  readonly query: Validator | undefined;
}

/** What answers the requests of one route. `allow`: every method of its path. */
export function serve(route: Route, deps: PipelineDeps, allow: string): RouteHandler {
  const checks: Checks = {
    body:
      route.body === undefined || route.signature !== undefined || route.bodyCheckedByHandler === true
        ? undefined
        : bodyValidator(route.body),
    query: route.query === undefined ? undefined : queryValidator(route.query),
  };
  const underApi = takesKeys(route.path);
  const writes = route.method !== 'GET' && underApi;
  const noStore = keptByNobody(route);
  return async (ctx, pathParams) => {
    const state = ctx.state as RequestState;
    state.route = route.path;
    state.allow = allow;
    state.noStore = noStore;
    const { authorization } = ctx.headers;
    const principal =
      deps.recognise(authorization, route.caller) ?? (await deps.authenticate(authorization, route.caller));
    state.principal = principal;
    if (route.roles !== undefined && !hasRole(principal, route.roles)) throw new HttpError('forbidden');
    const key = writes ? idempotencyKey(header(ctx, 'idempotency-key')) : undefined;
    const position = underApi ? deps.positions.parse(header(ctx, 'gift-position')) : undefined;
    const params = resolveParams(route, pathParams);
    const bytes = route.signature === undefined ? undefined : await readBytes(ctx);
    const body =
      route.body === undefined || bytes !== undefined
        ? undefined
        : await readBody(ctx, { optional: route.bodyOptional === true, form: route.formBody === true });
    if (position !== undefined) await deps.positions.wait(position, route.reads);

    const call = new RequestCall(ctx, deps, params, principal, writes ? randomCommandId() : '');
    if (bytes !== undefined) call.bytes = bytes;
    if (key === undefined) {
      const answer = await run(route, checks, call, ctx, body, deps.positions);
      const showing = shown(answer);
      if (showing !== undefined) await showing;
      respond(ctx, deps, answer);
      return;
    }
    const bodyHash = bodyHashOf(body === undefined ? {} : body);
    call.commandId = keyedCommandId(deps.hash, principal, scopeOf(route, params), key);
    call.bodyHash = bodyHash;
    const taken = await takeKey(deps.records, call.commandId, bodyHash, Date.now, deps.keys);
    if (!('settle' in taken)) {
      if (taken.seen !== undefined) await route.seenAgain?.(call, taken.seen);
      replay(ctx, deps, taken);
      return;
    }
    const firstPosition = deps.positions.stored(taken.first?.headers[POSITION_HEADER]);
    if (firstPosition !== undefined) call.firstPosition = firstPosition;
    await runKeyed(route, checks, call, ctx, body, deps, taken);
  };
}

function hasRole(principal: Principal, roles: readonly Role[]): boolean {
  return principal.kind === 'user' && principal.user.roles.some((role) => roles.includes(role));
}

/** The call of one request. A class, so that all calls have one shape: they are made and read for every request. */
class RequestCall implements Call {
  readonly params: Call['params'];
  readonly principal: Principal;
  readonly requestId: string;
  readonly path: string;
  readonly rawQuery: string;
  commandId: string;
  bodyHash?: string;
  firstPosition?: Position;
  query: Call['query'] = NOTHING;
  body: Call['body'] = NOTHING;
  embeds: readonly string[] = NO_EMBEDS;
  bytes: Buffer = NO_BYTES;
  readonly #ctx: Context;
  readonly #deps: PipelineDeps;
  #left: AbortSignal | undefined;

  constructor(ctx: Context, deps: PipelineDeps, params: Call['params'], principal: Principal, commandId: string) {
    this.params = params;
    this.principal = principal;
    this.requestId = (ctx.state as RequestState).requestId;
    this.path = ctx.path;
    this.rawQuery = ctx.querystring;
    this.commandId = commandId;
    this.#ctx = ctx;
    this.#deps = deps;
  }

  get left(): AbortSignal {
    return (this.#left ??= callerLeft(this.#ctx.res));
  }

  get address(): string {
    return this.#deps.addressOf(this.#ctx);
  }

  preferredType(types: readonly string[]): string | undefined {
    const type = this.#ctx.accepts([...types]);
    return typeof type === 'string' ? type : undefined;
  }

  /** Bound: handlers take it out of the call. */
  readonly header = (name: string): string | undefined => header(this.#ctx, name);
}

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});
const NO_EMBEDS: readonly string[] = Object.freeze([]);
const NO_BYTES = Buffer.alloc(0);
const NO_PARAMETERS: ParsedUrlQuery = Object.freeze({});

function header(ctx: Context, name: string): string | undefined {
  const value = ctx.headers[name];
  return Array.isArray(value) ? value.join(',') : value;
}

/** The path's parameters, a gift's identifier turned into its id where it is one. */
function resolveParams(route: Route, params: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (route.giftParam === undefined) return params;
  const identifier = params[route.giftParam] ?? '';
  const id = giftIdOf(identifier) ?? identifier;
  return id === identifier ? params : { ...params, [route.giftParam]: id };
}

/** What scopes an idempotency key: method and path, with the gift resolved. */
function scopeOf(route: Route, params: Readonly<Record<string, string>>): string {
  return `${route.method} ${route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))}`;
}

/**
 * Runs a request. A refusal that rests on what read models lack or show is no fact while they are behind the log. So it
 * is told only once they have shown the log's end, as it was after the first run, and a second run came to it as well:
 * a refused run has appended nothing.
 * @throws UnavailableError where they don't get there within a second
 */
async function run(
  route: Route,
  checks: Checks,
  call: RequestCall,
  ctx: Context,
  body: unknown,
  positions: PositionGate,
): Promise<Answer> {
  const { giftParam } = route;
  if (giftParam !== undefined && giftIdOf(call.params[giftParam] ?? '') === undefined)
    throw new HttpError('gift_not_found');
  try {
    return await runOnce(route, checks, call, ctx, body);
  } catch (error) {
    if (!restsOnReadModels(answerOf(error).code)) throw error;
  }
  await positions.waitForEnd(route.reads);
  return runOnce(route, checks, call, ctx, body);
}

async function runOnce(route: Route, checks: Checks, call: RequestCall, ctx: Context, body: unknown): Promise<Answer> {
  const handle = route.open === undefined ? route.handle : await route.open(call);
  checks.body?.(body === undefined ? {} : body);
  const parameters = ctx.querystring === '' ? NO_PARAMETERS : parseQuery(ctx.querystring);
  if (route.knownParametersOnly === true) refuseUnknownParameters(parameters, route.query, route.embeds !== undefined);
  if (route.query !== undefined) {
    const query = readQuery(parameters, route.query);
    checks.query?.(query);
    call.query = query;
  }
  call.embeds = embedsOf(route, parameters, body);
  if (body !== undefined) call.body = body as Call['body'];
  const answer = await handle(call);
  // What is streamed is an answer once it has begun: what fails before has its status.
  if (answer.body instanceof Readable && ctx.method !== 'HEAD') await firstPiece(answer.body, ctx.res, faultOf(ctx));
  return answer;
}

/** Tells of what goes wrong with an answer that is being sent, or given up. */
function faultOf(ctx: Context): (error: Error) => void {
  return (error) => void ctx.app.emit('error', error, ctx);
}

/** The relations asked for, each step of a dotted one too. @throws HttpError `unknown_embed` */
function embedsOf(route: Route, parameters: ParsedUrlQuery, body: unknown): readonly string[] {
  const known = route.embeds;
  if (known === undefined) return NO_EMBEDS;
  const inBody = (body as { embed?: readonly string[] } | undefined)?.embed ?? [];
  const asked = parameters === NO_PARAMETERS ? inBody : [...listParameter(parameters, 'embed'), ...inBody];
  if (asked.length === 0) return NO_EMBEDS;
  const wanted = new Set<string>();
  for (const relation of asked) {
    if (!known.includes(relation))
      throw new HttpError('unknown_embed', { message: `Unknown embed: ${shortened(relation)}.` });
    const steps = relation.split('.');
    for (let length = 1; length <= steps.length; length++) wanted.add(steps.slice(0, length).join('.'));
  }
  return [...wanted];
}

/** Runs a request that holds its key, and keeps or releases the key by what came of it. */
async function runKeyed(
  route: Route,
  checks: Checks,
  call: RequestCall,
  ctx: Context,
  body: unknown,
  deps: PipelineDeps,
  key: HeldKey,
): Promise<void> {
  let answer: Answer;
  try {
    answer = await run(route, checks, call, ctx, body, deps.positions);
  } catch (error) {
    const told = answerOf(error);
    if (!isKept(told.code)) await unlessUnkept(deps, call.requestId, () => key.release());
    else {
      const stored = {
        status: told.status,
        headers: { ...allowOf(told.status, ctx.state as RequestState), ...told.headers },
      };
      const keep = (): Promise<boolean> =>
        key.settle(told.more === undefined ? { ...stored, body: JSON.stringify({ error: told.message }) } : stored);
      // A purchase that was not paid stands in the log. Of other refusals nothing does: who is told one that is not
      // kept could be told later, by the same key, that it is done.
      if (told.status === 402) await unlessUnkept(deps, call.requestId, keep);
      else if (!(await keep()))
        throw new UnavailableError('another request holds the key by now: what it comes to is the outcome');
    }
    throw error;
  }
  const { status, headers = {}, body: content, seen } = answer;
  const text =
    typeof content === 'string' || content instanceof Readable || hasLongList(content)
      ? undefined
      : JSON.stringify(content);
  const position = positionHeader(deps, answer);
  const kept = {
    status,
    headers: { ...headers, ...position },
    ...(text === undefined ? {} : { body: text }),
    ...(seen === undefined ? {} : { seen }),
  };
  // Kept meanwhile: both are writes to the read store that the caller waits for.
  await Promise.all([unlessUnkept(deps, call.requestId, () => key.settle(kept)), shown(answer)]);
  respond(ctx, deps, answer);
}

/**
 * Waits until the read models that an answer names show what was written, a second at most. `undefined`: it names none,
 * and need not wait for a turn either; look-ups don't.
 */
function shown({ position, waitFor }: Answer): Promise<void> | undefined {
  return position === undefined || waitFor === undefined || waitFor.length === 0
    ? undefined
    : waitUntilProjected(position, waitFor);
}

/** The outcome stands in the log; that it can't be kept beside it must not take the answer from the caller. */
async function unlessUnkept(deps: PipelineDeps, requestId: string, keep: () => Promise<unknown>): Promise<void> {
  try {
    await keep();
  } catch (error) {
    deps.onUnkept(error, requestId);
  }
}

/**
 * What a 405 says beside its message: every method of the path (RFC 9110 15.5.6), also where a gift's state refused.
 */
export function allowOf(status: number, { allow }: RequestState): Record<string, string> {
  return status === 405 && allow !== undefined ? { Allow: allow } : {};
}

function positionHeader(deps: PipelineDeps, { position }: Answer): Record<string, string> {
  return position === undefined ? {} : { [POSITION_HEADER]: deps.positions.format(position) };
}

function respond(ctx: Context, deps: PipelineDeps, answer: Answer): void {
  const { body, position } = answer;
  const headers: string[] = [];
  if (answer.headers !== undefined)
    for (const [name, value] of Object.entries(answer.headers)) headers.push(name, value);
  if (position !== undefined) headers.push(POSITION_HEADER, deps.positions.format(position));
  if (answer.replayed === true) headers.push(...REPLAYED);
  if ((ctx.state as RequestState).noStore === true) headers.push(...NO_STORE);
  const content = typeof body === 'string' || body instanceof Readable ? body : jsonBody(body);
  if (typeof content === 'string' && typeof body !== 'string') {
    sendJson(ctx, answer.status, headers, content);
    return;
  }
  // Koa hears of its faults only while it reads: where the caller has gone before, or asked by HEAD, one that nobody
  // hears of would end the process.
  if (content instanceof Readable) content.on('error', faultOf(ctx));
  setCommonHeaders(ctx);
  ctx.status = answer.status;
  ctx.type = 'application/json';
  for (let at = 0; at < headers.length; at += 2) ctx.set(headers[at] as string, headers[at + 1] as string);
  ctx.body = content;
}

function replay(ctx: Context, { positions }: PipelineDeps, stored: StoredAnswer): void {
  // What is stored may itself be a repeated answer, made again from the log.
  const { [REPLAYED[0]]: _, [POSITION_HEADER]: position, ...headers } = stored.headers;
  const noStore = (ctx.state as RequestState).noStore === true ? NO_STORE : [];
  // One that would be refused when the caller gives it back is not handed out.
  const place = position === undefined || positions.stored(position) === undefined ? [] : [POSITION_HEADER, position];
  sendJson(
    ctx,
    stored.status,
    [...Object.entries(headers).flat(), ...place, ...REPLAYED, ...noStore],
    stored.body ?? '',
  );
}

const REPLAYED = ['Idempotent-Replayed', 'true'] as const;
const NO_STORE = ['Cache-Control', 'no-store'] as const;

/** The errors that any route of this kind may answer, beside its own. */
export function commonErrors(route: Route): ErrorCode[] {
  const codes: ErrorCode[] = ['internal', 'unavailable'];
  if (route.caller !== 'none') codes.push('authentication_failed');
  if (route.caller === 'user') codes.push('forbidden');
  if (takesKeys(route.path)) codes.push('invalid_position');
  if (route.method !== 'GET' && takesKeys(route.path))
    codes.push('invalid_idempotency_key', 'request_in_progress', 'idempotency_key_reused');
  if (route.signature !== undefined) codes.push('request_too_large', 'unsupported_content_type', 'too_many_requests');
  else if (route.body !== undefined)
    codes.push('unsupported_content_type', 'request_too_large', 'malformed_json', 'schema');
  if (route.query !== undefined || route.knownParametersOnly === true) codes.push('schema');
  if (route.embeds !== undefined) codes.push('unknown_embed');
  if (route.giftParam !== undefined) codes.push('gift_not_found');
  return [...new Set(codes)];
}
