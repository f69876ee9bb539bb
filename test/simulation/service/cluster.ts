/** What outlives the processes of a simulated service: engines, the ledgers of providers, settings, the data folder. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { type Config, loadConfig } from '../../../src/service/config.js';
import type { GivenEngines } from '../../../src/service/engines.js';
import { treeDir } from '../../../src/service/tree.js';
import { simulatedNotifications } from '../../../src/providers/notifications/simulated.js';
import type { Providers } from '../../../src/providers/openProviders.js';
import type { SubjectRow } from '../../../src/ports/keyStore.js';
import { clockMs } from '../../../src/lib/clock.js';
import { type LeaseWatch, watchLease } from '../checks/leases.js';
import { type SwapWatch, watchSwaps } from '../checks/swaps.js';
import { busRouter, openSimulatedBus } from '../engines/bus.js';
import { type EventLog, eventLog } from '../engines/eventLog.js';
import { openSimulatedEvents } from '../engines/eventStore.js';
import { openSimulatedKeys } from '../engines/keyStore.js';
import { openSimulatedReadStore, type ReadStoreDisk, readStoreDisk } from '../engines/readStore.js';
import { openSimulatedRecords, type RecordRows, recordRows } from '../engines/records.js';
import { type SubjectRows, subjectRows } from '../engines/subjectRows.js';
import { type Disk, openDisk } from '../world/disk.js';
import { mount } from '../world/files.js';
import { IMMEDIATE, type Link, linkTo } from '../world/link.js';
import type { SimulatedProcess } from '../world/simulatedProcess.js';
import type { Simulation } from '../world/simulation.js';
import { openPaymentAccount } from './paymentAccount.js';
import { openReceivers, type Receivers } from './receivers.js';

export interface Cluster {
  readonly simulation: Simulation;
  /** The log that processes start with. */
  log: EventLog;
  readonly readStore: ReadStoreDisk;
  readonly keys: SubjectRows;
  /** Rows that the key store has lost, since it was put back to a moment before them. */
  lostRows: readonly SubjectRow[];
  readonly receivers: Receivers;
  readonly leases: LeaseWatch;
  readonly swaps: SwapWatch;
  /** The disk of the evidence: tiles and signed heads, of all processes. */
  readonly disk: Disk;
  /** The published head, and the number of heads in the log, where the log was put back to before that head. */
  headBeyond: { readonly note: string; readonly events: number } | undefined;
  /** The payment provider's own account: charges and refunds by their idempotency keys. */
  readonly ledger: RecordRows;
  /** Number of the release that processes start with: each one has other versions of some read models. */
  release: number;
  /** `STRIPE_WEBHOOK_SECRET`: signs what the payment provider reports. */
  readonly stripeSecret: string;
  /** `MASTER_KEY` that processes start with. */
  masterKeys: string;
  /** The settings of a process with these roles. */
  config(roles: string): Config;
  /** The engines as a process reaches them. */
  enginesOf(process: SimulatedProcess, logger: Logger): GivenEngines;
  providersOf(process: SimulatedProcess, logger: Logger): Promise<Providers>;
  /** Removes the data folder. */
  close(): void;
}

/** Addresses that nothing is opened at: the engines are given. */
const SERVERS = {
  EVENTSTORE_URL: 'esdb://simulated:2113?tls=false',
  MONGODB_URL: 'mongodb://simulated/gift',
  KEYS_URL: 'mongodb://simulated/gift_keys',
  NATS_URL: 'nats://simulated:4222',
};

const DAY_MS = 24 * 3_600_000;
const STRIPE_WEBHOOK_SECRET = 'whsec_simulated';
/** Heads are often signed in some runs, which then write many files. */
const SEAL_EVERY_MS = ['10000', '10000', '10000', '1000'] as const;

export function openCluster(simulation: Simulation, settings: Readonly<Record<string, string>> = {}): Cluster {
  const chance = simulation.chance.stream('cluster');
  const key = (): string => chance.bytes(32).toString('hex');
  const [readStore, keys, ledger, router] = [readStoreDisk(), subjectRows(), recordRows(), busRouter()];
  const dataDir = mkdtempSync(join(tmpdir(), 'gift-simulation-'));
  const disk = openDisk(treeDir({ dataDir }), simulation);
  const unmount = mount(disk);
  const env: Readonly<Record<string, string>> = {
    ...SERVERS,
    DATA_DIR: dataDir,
    TOKEN_KEY: key(),
    HASH_KEY: key(),
    SEAL_KEY: key(),
    PAYMENTS: 'simulated',
    STRIPE_WEBHOOK_SECRET,
    NOTIFICATIONS: 'simulated',
    PUBLIC_URL: 'https://simulated.example',
    ERASURE_DELAY: '30',
    // A request beyond the limits of a day would wait for the next one.
    REPLACEMENTS_PER_DAY: '0',
    REVERSALS_PER_DAY: '0',
    SEAL_EVERY_MS: chance.stream('heads').pick(SEAL_EVERY_MS),
    ...settings,
  };
  // The provider of notifications is older than any request, whatever the clock of a process says.
  ledger.put('notificationLedger', String(simulation.now() - DAY_MS), {}, 0);
  const cluster: Cluster = {
    simulation,
    log: eventLog(chance.uuid()),
    readStore,
    keys,
    lostRows: [],
    headBeyond: undefined,
    receivers: openReceivers(simulation),
    leases: watchLease(readStore.records, simulation.now),
    swaps: watchSwaps(readStore.documents, () => cluster.log.end()),
    disk,
    ledger,
    release: 0,
    stripeSecret: STRIPE_WEBHOOK_SECRET,
    masterKeys: key(),
    config: (roles) => loadConfig({ ...env, MASTER_KEY: cluster.masterKeys, ROLES: roles }),
    enginesOf(process, logger) {
      const link = (engine: string): Link => linkTo(engine, process, simulation);
      return {
        events: openSimulatedEvents(cluster.log, link('events')),
        keys: openSimulatedKeys(keys, link('keys')),
        store: cluster.swaps.storeOf(
          process.name,
          cluster.leases.storeOf(process.name, openSimulatedReadStore(readStore, link('documents'))),
        ),
        bus: cluster.leases.busOf(
          process.name,
          openSimulatedBus(router, link('bus'), (err) => logger.warn({ err }, 'the bus met an error')),
        ),
        async openScratch() {
          const store = openSimulatedReadStore(readStoreDisk(), IMMEDIATE);
          return { store, close: store.close };
        },
      };
    },
    async providersOf(process, logger) {
      const link = linkTo('provider', process, simulation);
      return {
        payments: openPaymentAccount(ledger, link),
        notifications: await simulatedNotifications(openSimulatedRecords(ledger, { link }), logger, clockMs),
      };
    },
    close() {
      unmount();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
  return cluster;
}
