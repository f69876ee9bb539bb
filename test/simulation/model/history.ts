/**
 * What clients of a simulated or real service sent and saw. The model judges a history by the documents of the API
 * only, so nothing here knows how the service works.
 */

import { isRead, type Operation } from './operations.js';

/** An answer, read whole. Names of headers are in lower case. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as JSON. */
  readonly body: unknown;
}

/** Headers that the model judges, and the id by which the service's log knows a request: others need not be noted. */
export const JUDGED_HEADERS: ReadonlySet<string> = new Set([
  'allow',
  'decline-code',
  'error-code',
  'gift-position',
  'idempotent-replayed',
  'location',
  'retry-after',
  'transaction-id',
  'x-request-id',
]);

/** One request, as its client saw it. */
export interface Observation {
  /**
   * The id of the user whose token the request had, or `client:` and the id of the API client whose own token it was.
   * All users of a history are logged in through one API client.
   */
  readonly client: string;
  readonly operation: Operation;
  /** Ms since the epoch by the clock of the history; fractions order what happens in the same ms. */
  readonly sent: number;
  /** The same; `undefined` where no answer came. */
  readonly answered: number | undefined;
  /** `undefined`: the outcome is unknown. The request may have an effect at any time from `sent` on, or none. */
  readonly answer: Answer | undefined;
}

/** Everything that the clients of one run saw, in the order of `sent`. */
export type History = readonly Observation[];

/** Writes a history down while it happens. */
export interface Recorder {
  /** Notes a request. The function that it gives is called with the answer, or with `undefined` where there is none. */
  send(client: string, operation: Operation): (answer: Answer | undefined) => Observation;
  /** All so far. A request without an answer yet has an unknown outcome. */
  history(): History;
  /**
   * Forgets what a service does not know that was put back to a moment: all that was answered since. Of a request that
   * was sent before, or never answered, the outcome is then unknown. Pages of the event feed are forgotten, too: their
   * positions are of the former log.
   * @param moment ms, as `now`
   */
  forgetSince(moment: number): void;
}

/**
 * @param now the time in ms. Times of the history never repeat: what happens in the same ms is ordered by fractions.
 */
export function recorder(now: () => number): Recorder {
  let observations: Observation[] = [];
  let last = 0;
  const time = (): number => (last = Math.max(now(), last + 0.001));
  return {
    send(client, operation) {
      const noted = observations;
      const index = noted.length;
      const sent = time();
      noted.push({ client, operation, sent, answered: undefined, answer: undefined });
      return (answer) => {
        const answered = answer === undefined ? undefined : time();
        return (noted[index] = { client, operation, sent, answered, answer });
      };
    },
    history: () => [...observations],
    forgetSince(moment) {
      observations = observations.flatMap((one) => {
        if (one.operation.kind === 'listEvents') return [];
        if (one.answered !== undefined && one.answered < moment) return [one];
        if (isRead(one.operation) || (one.sent >= moment && one.answered !== undefined)) return [];
        return [{ ...one, answered: undefined, answer: undefined }];
      });
    },
  };
}

/** A field of a JSON body, by its path; `undefined` where there is none. */
export function field(body: unknown, ...path: readonly (string | number)[]): unknown {
  let value = body;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string | number, unknown>)[name];
  }
  return value;
}

/** The same, where it is a text. */
export function textField(body: unknown, ...path: readonly (string | number)[]): string | undefined {
  const value = field(body, ...path);
  return typeof value === 'string' ? value : undefined;
}

/** The same, where it is an array. */
export function listField(body: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const value = field(body, ...path);
  return Array.isArray(value) ? value : [];
}

/** Groups by a key. What has none is left out. */
export function grouped<T>(some: readonly T[], keyOf: (one: T) => string | undefined): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of some) {
    const key = keyOf(one);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}

/**
 * The answer, where it says what became of the request. 5xx, 408, 429 and 409 `Request in progress.` say nothing
 * (docs/api/tills.md).
 */
export function toldBy({ answer }: Pick<Observation, 'answer'>): Answer | undefined {
  if (answer === undefined || answer.status >= 500 || [408, 429].includes(answer.status)) return undefined;
  return answer.status === 409 && textField(answer.body, 'error') === 'Request in progress.' ? undefined : answer;
}

/** An observation in one line, for findings. `index` is its number in the history. */
export function describe(observation: Observation, index: number): string {
  const { client, operation, sent, answered, answer } = observation;
  const { kind, ...rest } = operation as Operation & Record<string, unknown>;
  const what = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  const times = `${shortTime(sent)}–${answered === undefined ? '?' : shortTime(answered)}`;
  const body =
    answer === undefined ? 'no answer' : `${answer.status} ${JSON.stringify(shownBody(answer.body))}`.slice(0, 240);
  const replayed = answer?.headers['idempotent-replayed'] === undefined ? '' : ' (replayed)';
  return `#${index} ${times} ${client} ${kind} ${what} -> ${body}${replayed}`;
}

/** The fields of a gift that the model does not judge: they only make a line longer. */
const OMITTED =
  /^(shortcode|theme_\w+|launch_url|message_id|code|vid|redeem_code|reminders?_sent|type|\w+_client|\w+_image_url|image_url|account_id|order_id|\w+_date|\w+_at)$/;

/** A body without what hardly matters to a reader. */
function shownBody(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body), (name, value: unknown) => {
    if (name === 'gifts' && Array.isArray(value) && typeof value[0] === 'object') return undefined;
    const omitted = OMITTED.test(name) && !/^(expiry_date|creation_at|updated_at)$/.test(name);
    return omitted || (name === 'updated_at' && typeof value === 'string' && !value.endsWith('Z')) ? undefined : value;
  }) as unknown;
}

const shortTime = (ms: number): string => `${new Date(ms).toISOString().slice(11, 23)}`;
