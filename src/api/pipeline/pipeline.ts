import { Readable } from 'node:stream';
import { UnavailableError } from '../../ports/unavailable.js';
import type { ErrorCode } from '../../domain/errors.js';
import { isGiftId } from '../../domain/giftIds.js';
import { READ_BY_ALL } from '../../projections/index.js';
import { HttpError, answerOf, basisOf, isKept } from './errors.js';
import { Exchange, type PipelineDeps } from './exchange.js';
import type { HeldKey, StoredAnswer } from './idempotency.js';
import { hasLongList } from './json.js';
import { POSITION_HEADER, waitUntilProjected } from './positions.js';
import type { RequestState } from './requestState.js';
import { allowOf, respond } from './respond.js';
import { type Answer, type Route, type RouteDescription, mustNotBeCached, provesItself } from './route.js';
import type { RouteHandler } from './router.js';
import {
  type Step,
  type StepAction,
  authenticate,
  authorise,
  handle,
  limit,
  openEntity,
  parseBody,
  readKey,
  readPosition,
  refuseHeld,
  replayOrClaim,
  resolveParameters,
  validate,
  waitForPosition,
} from './steps.js';

/** Steps before the decision, in the order in which their errors are answered. */
const CHECKS: readonly Step[] = [
  authenticate,
  authorise,
  limit,
  readKey,
  readPosition,
  resolveParameters,
  parseBody,
  waitForPosition,
  replayOrClaim,
];
/**
 * Steps of the decision, in the order in which their errors are answered. An idempotency key stores their outcome; they
 * may run twice.
 */
const DECISION: readonly Step[] = [openEntity, validate, refuseHeld, handle];

const UNKNOWN_GIFT: ErrorCode = 'gift_not_found';
const STAFF_GETS_A_GIFT: ErrorCode = 'staff_receives_no_gifts';

/** Errors that the steps may raise for a route. */
export function commonErrors(route: RouteDescription): ErrorCode[] {
  const ofSteps = [...CHECKS, ...DECISION].flatMap(({ errors }) => errors?.(route) ?? []);
  return [...new Set<ErrorCode>(['internal', 'unavailable', ...ofSteps])];
}

export function serve(route: Route, deps: PipelineDeps, allow: string): RouteHandler {
  const actions = (steps: readonly Step[]): StepAction[] => steps.flatMap((step) => step.of(route, deps) ?? []);
  const checks = actions(CHECKS);
  const decision = actions(DECISION);
  const noStore = mustNotBeCached(route);
  const countsFaults = provesItself(route);
  const answered = async (exchange: Exchange): Promise<void> => {
    for (const check of checks) {
      const pending = check(exchange);
      if (pending !== undefined) await pending;
    }
    if (exchange.replayed) return;
    const { held } = exchange;
    const outcome = decided(route, decision, exchange, deps);
    const answer = await (held === undefined ? outcome : settled(held, outcome, exchange, deps));
    const showing = held === undefined ? shown(answer) : undefined;
    if (showing !== undefined) await showing;
    const sending = respond(exchange.ctx, deps.positions, answer);
    if (sending !== undefined) await sending;
  };
  return async (ctx) => {
    const state = ctx.state as RequestState;
    state.route = route.path;
    state.allow = allow;
    state.noStore = noStore;
    if (route.compressed === true) state.compressed = true;
    if (route.errorPage !== undefined) state.errorPage = route.errorPage;
    const exchange = new Exchange(ctx, ctx.params, deps.addressOf);
    if (!countsFaults) return answered(exchange);
    return answered(exchange).catch((error: unknown) => {
      if (FAULTS.has(answerOf(error).status)) deps.limits?.takeRequest(exchange);
      throw error;
    });
  };
}

/** Statuses of faulty requests: where a body proves its sender, only requests with these count towards the limits. */
const FAULTS: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/**
 * Runs the decision. A refusal that rests on read models is unreliable while these are behind the log. It counts only
 * if a second run repeats it, once they reached the log's end as of the first run. The second run is safe: a refused
 * run has appended nothing.
 * @throws UnavailableError if the read models don't reach it within a second
 */
async function decided(
  route: Route,
  decision: readonly StepAction[],
  exchange: Exchange,
  deps: PipelineDeps,
): Promise<Answer> {
  const { giftParam, reads = [] } = route;
  try {
    // No read model can hold a malformed id.
    if (giftParam !== undefined && !isGiftId(exchange.params[giftParam] ?? '')) throw new HttpError(UNKNOWN_GIFT);
    try {
      return await run(decision, exchange);
    } catch (error) {
      const read: readonly string[] = [...READ_BY_ALL, ...reads];
      const basis = basisOf(answerOf(error).code).filter((name) => read.includes(name));
      if (basis.length === 0) throw error;
      await deps.positions.waitForEnd(basis);
    }
    return await run(decision, exchange);
  } catch (error) {
    const { code } = answerOf(error);
    if (giftParam !== undefined && code === UNKNOWN_GIFT) deps.limits?.takeUnknownGift(exchange);
    if (code === STAFF_GETS_A_GIFT) deps.onStaffRefused?.(route.operation);
    throw error;
  }
}

async function run(decision: readonly StepAction[], exchange: Exchange): Promise<Answer> {
  for (const step of decision) {
    const pending = step(exchange);
    if (pending !== undefined) await pending;
  }
  if (exchange.answer === undefined) throw new Error('a request was handled without an answer');
  return exchange.answer;
}

/** The key stores the outcome, or is free again. */
async function settled(
  key: HeldKey,
  outcome: Promise<Answer>,
  exchange: Exchange,
  deps: PipelineDeps,
): Promise<Answer> {
  let answer: Answer;
  try {
    answer = await outcome;
  } catch (error) {
    await settleRefusal(key, error, exchange, deps);
    throw error;
  }
  const toStore = storedAnswer(answer, deps);
  const storing = store(() => key.settle(toStore), { isLogged: answer.position !== undefined }, exchange, deps);
  // The key stores the answer while the read models catch up: the caller waits for both.
  await Promise.all([storing, shown(answer)]);
  return answer;
}

function storedAnswer(
  { status = 200, headers, body, position, accessRecord, unstored }: Answer,
  { positions }: PipelineDeps,
): StoredAnswer {
  const text =
    unstored === true || typeof body === 'string' || body instanceof Readable || hasLongList(body)
      ? undefined
      : JSON.stringify(body);
  return {
    status,
    headers: { ...headers, ...(position === undefined ? {} : { [POSITION_HEADER]: positions.format(position) }) },
    ...(text === undefined ? {} : { body: text }),
    ...(accessRecord === undefined ? {} : { accessRecord }),
  };
}

/** @throws UnavailableError where the refusal could not be stored and must not be answered */
async function settleRefusal(key: HeldKey, error: unknown, exchange: Exchange, deps: PipelineDeps): Promise<void> {
  const { code, status, message, headers, more } = answerOf(error);
  if (!isKept(code)) {
    await reportUnstored(exchange, deps, () => key.release());
    return;
  }
  const stored = { status, headers: { ...allowOf(status, exchange.ctx.state as RequestState), ...headers } };
  const keep = (): Promise<boolean> =>
    key.settle(more === undefined ? { ...stored, body: JSON.stringify({ error: message }) } : stored);
  // A declined purchase is in the log. Other refusals are not.
  await store(keep, { isLogged: status === 402 }, exchange, deps);
}

/**
 * Stores an outcome for its key. One that is not in the log must be stored before it is answered: else the same key could
 * come to another.
 * @throws UnavailableError where it could not be stored, and so must not be answered
 */
async function store(
  keep: () => Promise<boolean>,
  { isLogged }: { readonly isLogged: boolean },
  exchange: Exchange,
  deps: PipelineDeps,
): Promise<void> {
  if (isLogged) await reportUnstored(exchange, deps, keep);
  else if (!(await keep()))
    throw new UnavailableError('another request holds the key by now: what it comes to is the outcome');
}

/**
 * Waits at most a second for the answer's read models. `undefined` (not a promise): no wait, not even for a turn of the
 * event loop.
 */
function shown({ position, waitFor }: Answer): Promise<void> | undefined {
  return position === undefined || waitFor === undefined || waitFor.length === 0
    ? undefined
    : waitUntilProjected(position, waitFor);
}

/** The log has the outcome: the caller gets it even if the key can't store it. */
async function reportUnstored(exchange: Exchange, deps: PipelineDeps, keep: () => Promise<unknown>): Promise<void> {
  try {
    await keep();
  } catch (error) {
    deps.onUnstored(error, exchange.requestId);
  }
}
