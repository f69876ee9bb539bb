/** How every projection and process manager stands, from the engines alone: it is the same from any process, and what is stuck or dead can't look healthy. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isSettled } from './audit/parkedSettled.js';
import { PARKED_NAMES, type ParkedName } from './domain/parked.js';
import { parkedWork } from './metrics/parkedWork.js';
import { inParallel } from './inParallel.js';
import type { EventStore, Position } from './ports/eventStore.js';
import type { ReadStore } from './ports/readStore.js';
import { FEED_TYPES, type Intent } from './processors/feed.js';
import { parkLateMoneyAs } from './processors/lateMoney.js';
import { openWork } from './processors/openWork.js';
import { PROCESS_CHECKPOINT, type ProcessCheckpoint } from './processors/checkpoint.js';
import { purchaseHistory } from './processors/reopen.js';
import { PROCESS_LEASE } from './processors/run.js';
import type { OpenWork } from './processors/work.js';
import { buildOf, keptBuild, keptFormers, type Rebuild, rebuildOf } from './projections/builds.js';
import { lagBehind } from './projections/lag.js';
import { leaseState, type LeaseState } from './projections/lease.js';
import { checkpointName, type Projection } from './projections/projection.js';
import { listQuarantined } from './projections/quarantine.js';
import { rate } from './projections/rate.js';
import { keeperLease, unkeptOf } from './projections/unkept.js';
import { type RebuildProgress, toldProgress } from './projections/rebuildProgress.js';
import { inSlices } from './slices.js';

/** Two looks so far apart tell who is alive (a lease is renewed once a second) and how fast things go, in ms. */
const APART_MS = 1_600;
/** An older glance tells nothing any more: who was alive then may have died since, and must not look alive. In ms. */
const OLD_MS = 3_000;
/** Somebody who has looked will look again: for so long glances are had every second, so that the next look need not wait. In ms. */
const WATCHED_MS = 60_000;
const GLANCE_MS = 1_000;
/** Counting stops after so many events, or so long, in ms. */
const COUNT = { events: 20_000, ms: 300 };
/** Of the process managers' log: where they have never noted anything it is all of it. */
const FOLD_MS = 5_000;
const STREAMS_AT_ONCE = 8;

/** What projections and process managers have in common. Times are ISO 8601, UTC. */
interface CommonStanding {
  readonly name: string;
  /** Everything up to here is done; null: nothing yet. */
  readonly position: Position | null;
  /** Events that it subscribes to and has not done, up to the log's end. */
  readonly lag_events: number;
  /** False: there may be more. */
  readonly lag_exact: boolean;
  /** Age of the oldest of them, seconds; null: not found in time. */
  readonly lag_seconds: number | null;
  /** Such events that it does a second. */
  readonly per_second: number;
  /** The process that works; null: none does. */
  readonly holder: string | null;
}

/** How a projection stands. */
export interface ProjectionStanding extends CommonStanding {
  readonly kind: 'projection';
  readonly version: number;
  /** How often this version had been built before. */
  readonly build: number;
  /** Whether readers use it. Where they don't, nobody (`holder`) works on it until a process that knows it leads and begins it. */
  readonly in_use: boolean;
  /** Documents out of service. */
  readonly quarantined: number;
  readonly rebuild: RebuildStanding | null;
  /** What readers use where it is of another release: until this one's version is built; null: they use this one, or none has ever been built. */
  readonly served: ServedStanding | null;
  /** The build that can be gone back to, and until when. */
  readonly former: FormerStanding | null;
  /** Where a rebuild came after a deployment: what the release before it made, kept beside `former` so that this can be brought back. */
  readonly former_release: FormerStanding | null;
}

/** A build that is kept though readers have left it, and until when. */
export interface FormerStanding {
  readonly version: number;
  readonly build: number;
  readonly until: string;
}

/** What readers use, of another release. */
export interface ServedStanding {
  readonly version: number;
  readonly build: number;
  readonly position: Position | null;
  readonly lag_events: number;
  readonly lag_exact: boolean;
  readonly lag_seconds: number | null;
  /** The process that keeps it up to date; null: none does, so what readers get grows old. */
  readonly holder: string | null;
}

/** A rebuild under way. */
export interface RebuildStanding {
  readonly kind: 'rebuild' | 'rollback';
  readonly state: string;
  readonly version: number;
  readonly build: number;
  readonly by: string;
  readonly reason: string | null;
  readonly at: string;
  /** Who builds; null: nobody does, it waits to be gone on with. */
  readonly holder: string | null;
  readonly events: number | null;
  readonly total: number | null;
  readonly per_second: number | null;
  readonly seconds_left: number | null;
}

/** How a process manager stands. */
export interface ProcessStanding extends CommonStanding {
  readonly kind: 'process';
  /** Pieces of work that are under way, or wait for their next attempt. */
  readonly in_flight: number;
  /** Pieces of work that were given up and that nobody has seen to. */
  readonly parked: number;
}

/** One line of the status. */
export type Standing = ProjectionStanding | ProcessStanding;

/** Looks at an installation. */
export interface Standings {
  /** How everything stands now; takes two seconds unless somebody has looked within the last minute. @throws UnavailableError */
  look(): Promise<Standing[]>;
  close(): Promise<void>;
}

/** What the feed tells half of, from where it was left on. */
type HalfTold = Extract<Intent, { do: 'reopen' | 'retell' | 'late money' }>;

/** What one look has found of rates and leases. */
interface Look {
  readonly at: number;
  readonly positions: ReadonlyMap<string, Position | undefined>;
  readonly leases: ReadonlyMap<string, LeaseState | undefined>;
}

/** What is looked at. */
export interface StandingsOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly projections: readonly Projection[];
}

/** Makes ready to look. */
export function standings({ events, store, projections }: StandingsOptions): Standings {
  const parked = parkedWork(events);
  const leaseNames = ['projector', PROCESS_LEASE, ...projections.map(({ name }) => `rebuild/${name}`)];
  let glances: Look[] = [];
  let watched: { readonly timer: NodeJS.Timeout; until: number } | undefined;
  let glancing: Promise<void> = Promise.resolve();

  function keep(one: Look): void {
    const now = performance.now();
    glances = [...glances.filter(({ at }) => now - at <= OLD_MS), one];
  }

  function unwatch(): void {
    clearInterval(watched?.timer);
    watched = undefined;
  }

  function watch(): void {
    const until = performance.now() + WATCHED_MS;
    if (watched !== undefined) {
      watched.until = until;
      return;
    }
    const timer = setInterval(() => {
      if (watched === undefined || performance.now() > watched.until) unwatch();
      // An engine that does not answer is met by whoever looks.
      else glancing = glance().then(keep, () => undefined);
    }, GLANCE_MS);
    timer.unref();
    watched = { timer, until };
  }

  async function glance(): Promise<Look> {
    const positions = new Map<string, Position | undefined>();
    const keepers: string[] = [];
    for (const projection of projections) {
      const { name } = projection;
      const active = await store.active(name);
      const kept = await keptBuild(store, projection, active);
      positions.set(name, await store.checkpoint(checkpointName(kept)));
      if (active !== undefined && active !== kept.version) keepers.push(keeperLease(name, active));
    }
    positions.set(PROCESS_LEASE, await processCheckpoint());
    const leases = new Map(await Promise.all([...leaseNames, ...keepers].map(async (name) => [name, await leaseState(store.records, name)] as const)));
    return { at: performance.now(), positions, leases };
  }

  async function processCheckpoint(): Promise<Position | undefined> {
    const kept = (await store.records.get<ProcessCheckpoint>(PROCESS_CHECKPOINT))?.value;
    return kept?.logId === events.logId ? kept.position : undefined;
  }

  async function projectionStanding(projection: Projection, seen: Look, was: Look): Promise<ProjectionStanding> {
    const { name, types } = projection;
    const active = await store.active(name);
    const kept = await keptBuild(store, projection, active);
    // What readers use where it is another release's.
    const other = active === kept.version ? undefined : active;
    const position = seen.positions.get(name);
    const [lag, quarantined, rebuild, formers, served, perSecond, begun] = await Promise.all([
      lagBehind(events, position, types, { count: COUNT.events, withinMs: COUNT.ms }),
      listQuarantined(store.records, kept),
      rebuildStanding(name, seen, was),
      keptFormers(store, name),
      other === undefined ? null : servedStanding(projection, other, seen, was),
      rate(events, types, { from: was.positions.get(name), to: position, ms: seen.at - was.at }),
      other === undefined || store.versions(name).then((known) => known.includes(kept.version)),
    ]);
    const { version, build } = buildOf(kept.version);
    const [former = null, formerRelease = null] = formers.filter(({ number }) => number !== active).map(({ number, until }) => ({ ...buildOf(number), until: new Date(until).toISOString() }));
    return {
      kind: 'projection', name, version, build, in_use: active === kept.version, position: position ?? null, lag_events: lag.events, lag_exact: lag.whole,
      lag_seconds: lag.seconds === undefined ? null : inTenths(lag.seconds), per_second: perSecond, holder: begun ? holderOf('projector', seen, was) : null, quarantined: quarantined.length, rebuild, served, former, former_release: formerRelease,
    };
  }

  async function servedStanding({ name, types }: Projection, number: number, seen: Look, was: Look): Promise<ServedStanding> {
    const [position, unkept] = await Promise.all([store.checkpoint(checkpointName({ name, version: number })), unkeptOf(store, name)]);
    const lag = await lagBehind(events, position, types, { count: COUNT.events, withinMs: COUNT.ms });
    const holder = holderOf(unkept?.number === number ? keeperLease(name, number) : 'projector', seen, was);
    return { ...buildOf(number), position: position ?? null, lag_events: lag.events, lag_exact: lag.whole, lag_seconds: lag.seconds === undefined ? null : inTenths(lag.seconds), holder };
  }

  async function rebuildStanding(name: string, seen: Look, was: Look): Promise<RebuildStanding | null> {
    const rebuild = (await rebuildOf(store, name))?.value;
    if (rebuild === undefined) return null;
    const holder = holderOf(`rebuild/${name}`, seen, was) ?? (rebuild.state === 'building' ? null : holderOf('projector', seen, was));
    return rebuildShown(rebuild, { progress: (await toldProgress(store, name, rebuild.target))?.progress, holder });
  }

  /** What is open is folded from the log: what the process that works says of itself is not asked. */
  async function processStandings(seen: Look, was: Look): Promise<ProcessStanding[]> {
    const from = seen.positions.get(PROCESS_LEASE);
    const open = openWork(from);
    const late = AbortSignal.timeout(FOLD_MS);
    let whole = true;
    for await (const batch of events.readAll(from, { types: FEED_TYPES }, { signal: late })) {
      await inSlices(batch.events, (event) => void open.apply(event));
      open.lookedAt(batch.position);
      whole = batch.caughtUp;
    }
    await settleByStreams(open, late);
    const done = open.checkpoint();
    const [waiting, perSecond, lag] = await Promise.all([
      parked(),
      rate(events, FEED_TYPES, { from: was.positions.get(PROCESS_LEASE), to: from, ms: seen.at - was.at }),
      open.size === 0 ? { events: 0, whole: true } : lagBehind(events, done, FEED_TYPES, { count: COUNT.events, withinMs: COUNT.ms }),
    ]);
    const inFlight = new Map<ParkedName, number>();
    await inSlices(open.resume(), (intent) => inFlight.set(processOf(intent), (inFlight.get(processOf(intent)) ?? 0) + 1));
    const seconds = open.oldestAt === undefined ? 0 : Math.max(0, (Date.now() - Date.parse(open.oldestAt)) / 1_000);
    return PARKED_NAMES.map((name) => ({
      kind: 'process', name, position: done ?? null, lag_events: lag.events, lag_exact: lag.whole && whole, lag_seconds: inTenths(seconds), per_second: perSecond,
      holder: holderOf(PROCESS_LEASE, seen, was), in_flight: inFlight.get(name) ?? 0, parked: waiting.get(name) ?? 0,
    }));
  }

  /** Of what the feed tells half the streams tell the rest. */
  async function settleByStreams(open: OpenWork, late: AbortSignal): Promise<void> {
    const waiting: HalfTold[] = [];
    await inSlices(open.resume(), (intent) => {
      if (intent.do === 'reopen' || intent.do === 'retell' || intent.do === 'late money') waiting.push(intent);
    });
    await inParallel(waiting, STREAMS_AT_ONCE, (intent) => settleByStream(open, intent), late);
  }

  async function settleByStream(open: OpenWork, intent: HalfTold): Promise<void> {
    switch (intent.do) {
      // Purchases of which it tells only the end, since they began at or below the checkpoint, or were retried.
      case 'reopen': {
        const { transactionId } = intent;
        return void open.reopen(transactionId, await purchaseHistory(events, transactionId, open.beginReopen(transactionId)));
      }
      // Gifts whose receivers were to be told again, or are others by now: that they have been it does not tell.
      case 'retell': {
        const { giftId } = intent;
        const { transactionId = '', generation = 0 } = open.retelling(giftId) ?? {};
        if (await isSettled(events, { name: 'notification', work: { entity: giftId, transaction_id: transactionId } })) open.retold(giftId, generation);
        return undefined;
      }
      // Disputes whose gifts were blocked before they were lost: their end alone reads as if nothing were done.
      case 'late money': {
        const { transactionId, key } = intent;
        const { name, entity } = parkLateMoneyAs(transactionId, key);
        if (name === 'dispute' && (await isSettled(events, { name, work: { entity, transaction_id: transactionId } }))) open.lateMoneyDone(transactionId, key);
        return undefined;
      }
      default:
        return intent satisfies never;
    }
  }

  return {
    async look() {
      watch();
      const now = performance.now();
      let was = glances.findLast(({ at }) => now - at >= APART_MS && now - at <= OLD_MS);
      if (was === undefined) {
        was = await glance();
        await sleep(APART_MS);
      }
      const seen = await glance();
      const then = was;
      const [models, processes] = await Promise.all([Promise.all(projections.map((projection) => projectionStanding(projection, seen, then))), processStandings(seen, then)]);
      return [...models, ...processes];
    },
    async close() {
      unwatch();
      await glancing;
    },
  };
}

/** A rebuild as it is shown. `holder`: who builds; null: nobody does. */
export function rebuildShown({ kind, state, target, by, reason, at }: Rebuild, { progress, holder }: { readonly progress: RebuildProgress | undefined; readonly holder: string | null }): RebuildStanding {
  return {
    kind, state, ...buildOf(target), by, reason: reason ?? null, at, holder, events: progress?.events ?? null, total: progress?.total ?? null,
    per_second: progress === undefined || holder === null ? null : Math.round(progress.perSecond), seconds_left: progress?.secondsLeft === undefined || holder === null ? null : inTenths(progress.secondsLeft),
  };
}

/** Who has a lease: only if it was renewed in between. */
function holderOf(name: string, seen: Look, was: Look): string | null {
  const [now, then] = [seen.leases.get(name), was.leases.get(name)];
  return now === undefined || now.holder === null || now.version === then?.version ? null : now.holder;
}

/** Which process manager parks it, should it fail. */
function processOf(intent: Intent): ParkedName {
  switch (intent.do) {
    case 'charge':
    case 'issue':
    case 'reopen':
      return 'purchase';
    case 'tell':
    case 'find out':
    case 'go on telling':
    case 'retell':
      return 'notification';
    case 'refund':
      return 'refund';
    case 'late money':
      return parkLateMoneyAs(intent.transactionId, intent.key).name;
    default:
      return intent satisfies never;
  }
}

/** Seconds as they are told: to a tenth. */
export function inTenths(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}
