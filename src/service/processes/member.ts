/** A process that serves behind the same ports as others: what it shows, it shows of all of them. */
import cluster from 'node:cluster';
import type { AppendRequest } from '../../adapters/embedded/eventStore/commit.js';
import type { CommitGroup, CommitLink } from '../../adapters/embedded/eventStore/commitLink.js';
import type { PartHealth, Readiness } from '../../api/health.js';
import { inFlight } from '../../lib/inFlight.js';
import type { Metrics } from '../../metrics/metrics.js';
import { type MetricValues, textOfAll } from '../../metrics/ofAll.js';
import {
  type Addresses,
  PLACE,
  type Place,
  type ProcessAnswer,
  type Question,
  type Shown,
  type ToProcess,
  type ToSupervisor,
} from './messages.js';

export interface Member extends Place {
  /** Tells the supervisor that this process serves. */
  serving(addresses: Addresses): void;
  /** Readiness of all processes. @param own of this one */
  readiness(own: Readiness): Readiness;
  /** The metrics page of all processes. @param own of this one */
  metrics(own: Metrics): Pick<Metrics, 'text' | 'contentType'>;
  /** The way to the process that commits for all of them to the embedded log. */
  readonly commits: CommitLink;
}

type Health = Awaited<ReturnType<Readiness>>;

/** This process among others; `undefined`: it is not supervised, and serves alone. */
export function memberOf(env: Readonly<Record<string, string | undefined>>): Member | undefined {
  const place = cluster.isWorker ? env[PLACE] : undefined;
  if (place === undefined) return undefined;
  const { number, version, late } = JSON.parse(place) as Place;
  const pending = inFlight<(answers: unknown) => void>();
  const own: Partial<Record<Shown, () => Promise<unknown>>> = {};
  let commit: CommitGroup | undefined;
  let committer: number | undefined;

  process.on('message', (message: ToProcess) => {
    if (message.kind === 'answers') pending.take(message.id)?.(message.answers);
    else if (message.kind === 'committer') committer = message.number;
    else if (message.kind === 'ask') void answer(message);
  });
  const answer = async ({ id, what, requests }: ToProcess & { readonly kind: 'ask' }): Promise<void> => {
    if (what === 'commits') {
      const outcomes = commit === undefined ? 'nowhere' : await commit(requests as readonly AppendRequest[]);
      send({ kind: 'answer', id, value: outcomes });
      return;
    }
    // What can't be shown counts as no answer.
    const value = await own[what]?.().catch(() => undefined);
    send({ kind: 'answer', id, value });
  };
  const ask = async (what: Question, requests?: unknown): Promise<unknown> =>
    new Promise((resolve) => send({ kind: 'ask', id: pending.put(resolve), what, requests }));
  const ofAll = async (what: Shown): Promise<readonly ProcessAnswer[]> => (await ask(what)) as readonly ProcessAnswer[];

  return {
    number,
    version,
    late,
    serving: (addresses) => send({ kind: 'serving', addresses }),
    readiness(ofThis) {
      own.readiness = ofThis;
      return async () => readinessOfAll(await ofAll('readiness'));
    },
    commits: {
      elsewhere: () => committer !== undefined && committer !== number,
      send: async (requests) => (await ask('commits', requests)) as Awaited<ReturnType<CommitLink['send']>>,
      serve(how) {
        commit = how;
      },
    },
    metrics(ofThis) {
      own.metrics = ofThis.values;
      return {
        contentType: ofThis.contentType,
        async text() {
          const answers = await ofAll('metrics');
          return textOfAll(
            answers.flatMap(({ value }) => (value === undefined ? [] : [value as MetricValues])),
            // A process that is frozen has connections that it does not answer.
            answers.map(({ number, state, deaths, value }) => ({
              number,
              serves: state === 'serving' && value !== undefined,
              deaths,
            })),
          );
        },
      };
    },
  };
}

function send(message: ToSupervisor): void {
  process.send?.(message);
}

/**
 * All processes as one: ready where all that serve are, and all have started. A process that has died and is started
 * again gets no requests, so the others are ready without it.
 */
export function readinessOfAll(answers: readonly ProcessAnswer[]): Health {
  const known = answers.flatMap(({ number, value }) => (value === undefined ? [] : [{ number, ...(value as Health) }]));
  const names = new Set(known.flatMap(({ parts }) => Object.keys(parts)));
  const parts: Record<string, PartHealth> = { processes: processesHealth(answers) };
  for (const name of names) {
    const shown = known.flatMap(({ number, parts: { [name]: part } }) =>
      part === undefined ? [] : [{ number, part }],
    );
    const details = new Set(shown.map(({ part }) => part.detail));
    const isSame = details.size === 1 && shown.length === known.length;
    parts[name] = {
      ready: shown.every(({ part }) => part.ready),
      detail: isSame
        ? [...details].join()
        : shown.map(({ number, part }) => `process ${number}: ${part.detail}`).join('; '),
    };
  }
  return { parts, simulated: known[0]?.simulated ?? [] };
}

function processesHealth(answers: readonly ProcessAnswer[]): PartHealth {
  const missing = answers.flatMap(({ number, state, hasServed, deaths, value }) => {
    if (state === 'serving') return value === undefined ? [`process ${number} does not answer`] : [];
    return [
      hasServed ? `process ${number} has died (${deaths} times) and is started again` : `process ${number} starts`,
    ];
  });
  const serve = answers.filter(({ state, value }) => state === 'serving' && value !== undefined).length;
  return {
    ready: answers.every(({ state, hasServed, value }) => hasServed && (state !== 'serving' || value !== undefined)),
    detail: [`${serve} of ${answers.length} serve`, ...missing].join(', '),
  };
}
