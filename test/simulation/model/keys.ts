/**
 * Idempotency keys (docs/api/conventions.md#idempotency-keys): requests with one key have one outcome, which only the
 * first of them gets without `Idempotent-Replayed`. What the outcome does to a gift is the gift model's affair.
 */
import { ERRORS } from './errorTable.js';
import type { Finding, Leeway } from './finding.js';
import { type History, type Observation, describe, grouped, textField, toldBy } from './history.js';
import { bodyOf, routeOf } from './operations.js';

/** The scope of a key: user, route with the gift, key. `undefined` for requests without one. */
export function scopeOf({ client, operation }: Observation): string | undefined {
  if (!('key' in operation) || operation.key === undefined) return undefined;
  return `${client} ${routeOf(operation)} ${operation.key}`;
}

/** Whether a key keeps this outcome. */
const keeps = (observation: Observation): boolean => {
  const answer = toldBy(observation);
  if (answer === undefined) return false;
  return answer.status < 400 || ERRORS.get(answer.headers['error-code'] ?? '')?.kept === true;
};

/** What a history shows of an idempotency key. */
export interface SeenKey {
  /** Number of requests that have it or look it up. */
  requests: number;
  /** Whether an answer is the first one of an outcome that the key keeps: no other request with it was decided. */
  decided: boolean;
  /** Whether an answer depends on what the key keeps: a replay, a refusal for another body, a look-up. */
  matters: boolean;
}

export function seenKeys(history: History): Map<string, SeenKey> {
  const keys = new Map<string, SeenKey>();
  for (const observation of history) {
    const { client, operation, answer } = observation;
    const lookedUp = operation.kind === 'lookUpKey' ? `${client} redeem ${operation.gift} ${operation.of}` : undefined;
    const scope = lookedUp ?? scopeOf(observation);
    if (scope === undefined) continue;
    const key = keys.get(scope) ?? { requests: 0, decided: false, matters: false };
    keys.set(scope, key);
    const replayed = answer?.headers['idempotent-replayed'] !== undefined;
    key.requests += 1;
    key.decided ||= lookedUp === undefined && !replayed && keeps(observation);
    key.matters ||= lookedUp !== undefined || replayed || answer?.headers['error-code'] === 'idempotency_key_reused';
  }
  return keys;
}

/** Findings about keys. */
export function checkKeys(history: History, leeway: Leeway): Finding[] {
  const scopes = grouped(history, scopeOf);
  const numbers = new Map(history.map((observation, index) => [observation, index]));
  const finding = (why: string, some: readonly Observation[]): Finding => ({
    rule: 'idempotency key',
    text: [why, ...some.slice(0, 10).map((one) => describe(one, numbers.get(one) ?? -1))].join('\n'),
  });
  return [...scopes.values()].flatMap((some) => [
    ...checkOutcomes(some, leeway, finding),
    ...some.flatMap((one) => checkRefusal(one, some, leeway, finding)),
  ]);
}

type Report = (why: string, some: readonly Observation[]) => Finding;

/** All kept outcomes of one key are the same, and one of them at most is a first one. */
function checkOutcomes(some: readonly Observation[], leeway: Leeway, finding: Report): Finding[] {
  const kept = some.filter(keeps);
  const outcomes = new Set(kept.map((one) => outcomeOf(one, leeway)));
  if (outcomes.size > 1) return [finding('One key has several outcomes.', kept)];
  const firsts = kept.filter(({ answer }) => answer?.headers['idempotent-replayed'] === undefined);
  if (firsts.length > 1)
    return [finding('One key was decided several times: no answer says that it is a replay.', firsts)];
  return [];
}

/** A purchase that is answered from the log shows what has become of it since: a pending one may be declined. */
function outcomeOf({ operation, answer }: Observation, { answersLostMs }: Leeway): string {
  const transaction = textField(answer?.body, 'data', 'id') ?? answer?.headers['transaction-id'];
  const shown = operation.kind === 'purchase' && answersLostMs !== undefined ? transaction : undefined;
  return JSON.stringify(shown ?? [answer?.status, answer?.body]);
}

/** A refusal because of the key itself needs another request with that key. */
function checkRefusal(
  one: Observation,
  some: readonly Observation[],
  { answersLostMs = 0 }: Leeway,
  finding: Report,
): Finding[] {
  const message = textField(one.answer?.body, 'error');
  const others = some.filter((other) => other !== one);
  if (message === 'Request in progress.') {
    const ended = (other: Observation): number =>
      toldBy(other) === undefined ? Infinity : (other.answered ?? Infinity) + answersLostMs;
    if (others.some((other) => other.sent <= (one.answered ?? Infinity) && ended(other) >= one.sent)) return [];
    return [finding('No other request with this key was in progress.', some)];
  }
  if (message === 'Idempotency key already used with another request.') {
    const body = bodyOf(one.operation);
    if (others.some((other) => bodyOf(other.operation) !== body)) return [];
    return [finding('Every request with this key is the same.', some)];
  }
  return [];
}
