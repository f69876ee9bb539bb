/** What every route's requests go through: the steps in their order, and what an idempotency key keeps of them. */
import { Readable } from 'node:stream';
import { UnavailableError } from '../../ports/unavailable.js';
import { giftIdOf } from '../../domain/giftIds.js';
import { type ErrorCode, HttpError, answerOf } from './errors.js';
import { Exchange, type PipelineDeps } from './exchange.js';
import type { HeldKey, StoredAnswer } from './idempotency.js';
import { hasLongList } from './json.js';
import { POSITION_HEADER, waitUntilProjected } from './positions.js';
import { isKept, restsOnReadModels } from './repeats.js';
import type { RequestState } from './requestState.js';
import { allowOf, respond } from './respond.js';
import { type Answer, type Route, type RouteDescription, mustNotBeCached } from './route.js';
import type { RouteHandler } from './router.js';
import {
  type Step,
  type StepAction,
  authenticate,
  authorise,
  handle,
  openEntity,
  parseBody,
  readKey,
  readPosition,
  replayOrClaim,
  resolveParameters,
  validate,
  waitForPosition,
} from './steps.js';

/** Steps that look at the request alone, in the order in which they answer. */
const CHECKS: readonly Step[] = [
  authenticate,
  authorise,
  readKey,
  readPosition,
  resolveParameters,
  parseBody,
  waitForPosition,
  replayOrClaim,
];
/** Steps that decide, in the order in which they answer. A key keeps their outcome; they may run twice. */
const DECISION: readonly Step[] = [openEntity, validate, handle];

/** The errors that any route of this kind may answer, besides its own: those of the steps. */
export function commonErrors(route: RouteDescription): ErrorCode[] {
  const ofSteps = [...CHECKS, ...DECISION].flatMap(({ errors }) => errors?.(route) ?? []);
  return [...new Set<ErrorCode>(['internal', 'unavailable', ...ofSteps])];
}

/** What answers the requests of one route. `allow`: every method of its path. */
export function serve(route: Route, deps: PipelineDeps, allow: string): RouteHandler {
  const actions = (steps: readonly Step[]): StepAction[] => steps.flatMap((step) => step.of(route, deps) ?? []);
  const checks = actions(CHECKS);
  const decision = actions(DECISION);
  const noStore = mustNotBeCached(route);
  return async (ctx) => {
    const state = ctx.state as RequestState;
    state.route = route.path;
    state.allow = allow;
    state.noStore = noStore;
    const exchange = new Exchange(ctx, ctx.params, deps.addressOf);
    for (const check of checks) {
      const pending = check(exchange);
      if (pending !== undefined) await pending;
    }
    if (exchange.replayed) return;
    const { held } = exchange;
    const decide = async (): Promise<Answer> => decided(route, decision, exchange, deps);
    const answer = await (held === undefined ? decide() : decidedWithKey(held, exchange, deps, decide));
    const showing = held === undefined ? shown(answer) : undefined;
    if (showing !== undefined) await showing;
    respond(ctx, deps.positions, answer);
  };
}

/**
 * Decides. A refusal that rests on what read models lack or show is no fact while they are behind the log. So it is
 * given only once they have shown the log's end, as it was after the first run, and a second run came to it as well: a
 * refused run has appended nothing.
 * @throws UnavailableError where they don't get there within a second
 */
async function decided(
  route: Route,
  decision: readonly StepAction[],
  exchange: Exchange,
  deps: PipelineDeps,
): Promise<Answer> {
  const { giftParam, reads } = route;
  // No gift is called so, whatever the read models lack.
  if (giftParam !== undefined && giftIdOf(exchange.params[giftParam] ?? '') === undefined)
    throw new HttpError('gift_not_found');
  try {
    return await run(decision, exchange);
  } catch (error) {
    if (!restsOnReadModels(answerOf(error).code)) throw error;
  }
  await deps.positions.waitForEnd(reads);
  return run(decision, exchange);
}

async function run(decision: readonly StepAction[], exchange: Exchange): Promise<Answer> {
  for (const step of decision) {
    const pending = step(exchange);
    if (pending !== undefined) await pending;
  }
  if (exchange.answer === undefined) throw new Error('a request was handled without an answer');
  return exchange.answer;
}

/** Decides a request that holds its key, and keeps or releases the key by the outcome. */
async function decidedWithKey(
  key: HeldKey,
  exchange: Exchange,
  deps: PipelineDeps,
  decide: () => Promise<Answer>,
): Promise<Answer> {
  let answer: Answer;
  try {
    answer = await decide();
  } catch (error) {
    await settleRefusal(key, error, exchange, deps);
    throw error;
  }
  const kept = storedAnswer(answer, deps);
  // Kept while the read models catch up: the caller waits for both.
  await Promise.all([reportUnkept(exchange, deps, () => key.settle(kept)), shown(answer)]);
  return answer;
}

function storedAnswer(
  { status, headers, body, position, accessRecord }: Answer,
  { positions }: PipelineDeps,
): StoredAnswer {
  const text =
    typeof body === 'string' || body instanceof Readable || hasLongList(body) ? undefined : JSON.stringify(body);
  return {
    status,
    headers: { ...headers, ...(position === undefined ? {} : { [POSITION_HEADER]: positions.format(position) }) },
    ...(text === undefined ? {} : { body: text }),
    ...(accessRecord === undefined ? {} : { accessRecord }),
  };
}

/** @throws UnavailableError where the refusal must not be given, since the key could not keep it */
async function settleRefusal(key: HeldKey, error: unknown, exchange: Exchange, deps: PipelineDeps): Promise<void> {
  const { code, status, message, headers, more } = answerOf(error);
  if (!isKept(code)) {
    await reportUnkept(exchange, deps, () => key.release());
    return;
  }
  const stored = { status, headers: { ...allowOf(status, exchange.ctx.state as RequestState), ...headers } };
  const keep = (): Promise<boolean> =>
    key.settle(more === undefined ? { ...stored, body: JSON.stringify({ error: message }) } : stored);
  // A purchase that was not paid stands in the log. Other refusals don't: given without being kept, the same key could
  // later be answered that it is done.
  if (status === 402) await reportUnkept(exchange, deps, keep);
  else if (!(await keep()))
    throw new UnavailableError('another request holds the key by now: what it comes to is the outcome');
}

/**
 * Waits until the read models that an answer names show what was written, a second at most. `undefined`: it names none,
 * and need not wait for a turn either.
 */
function shown({ position, waitFor }: Answer): Promise<void> | undefined {
  return position === undefined || waitFor === undefined || waitFor.length === 0
    ? undefined
    : waitUntilProjected(position, waitFor);
}

/** The outcome stands in the log: the caller gets it even where the key can't keep it. */
async function reportUnkept(exchange: Exchange, deps: PipelineDeps, keep: () => Promise<unknown>): Promise<void> {
  try {
    await keep();
  } catch (error) {
    deps.onUnkept(error, exchange.requestId);
  }
}
