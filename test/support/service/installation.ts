/**
 * The embedded engines with workers and process managers in a temporary folder, as one process or several would have
 * them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { openEmbeddedBus } from '../../../src/adapters/embedded/bus/bus.js';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import type { PaymentMethod } from '../../../src/domain/account.js';
import type { Bus } from '../../../src/ports/bus.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import type { Contact } from '../../../src/processors/notification/address.js';
import { type ProcessorDeps, runProcessors } from '../../../src/processors/managers.js';
import type { Processors } from '../../../src/processors/runner/run.js';
import type { Subjects } from '../../../src/runtime/personal/subjects.js';
import { memorySubjects } from '../fixtures/memorySubjects.js';
import { startWorkers, type WorkerDeps } from '../../../src/providers/workers.js';
import { DEADLINE_MS } from '../assertions/until.js';
import { openTestLog, type TestLog } from './testLog.js';

/** The house. */
export interface TestInstallation extends TestLog {
  readonly dir: string;
  readonly reads: ReadStore;
  readonly bus: Bus;
  /** Payment methods by reference; a reference that isn't here is a card. */
  readonly methods: Map<string, Pick<PaymentMethod, 'kind' | 'prepaid' | 'customer'>>;
  readonly contacts: Map<string, Contact>;
  /** Of numbers beside those of `phone`. */
  readonly subjects: Subjects;
  /** The log's lines. */
  readonly lines: { readonly msg: string; readonly [field: string]: unknown }[];
  readonly deps: ProcessorDeps;
  /** Starts process managers, with some of what they work with replaced. */
  process(replaced?: Partial<ProcessorDeps>): Processors;
  /** Starts workers, by default with simulated providers. */
  work(
    providers?: Partial<Pick<WorkerDeps, 'payments' | 'notifications' | 'bus'>>,
  ): Promise<{ close(): Promise<void> }>;
  /** Waits until it holds, at most `DEADLINE_MS`. */
  until(holds: () => Promise<boolean>): Promise<void>;
  close(): Promise<void>;
}

/** The `n`th receiver by phone. */
export const phone = (n: number): { phone_id: string } => ({ phone_id: `phone${n}` });

/** Their number. */
export const numberOf = (n: number): string => `+4477009${String(n).padStart(5, '0')}`;

/** How many messages the simulated provider has been handed. */
export const sentIn = (installation: TestInstallation): number =>
  installation.lines.filter(({ msg }) => msg === 'simulated notification sent').length;

/** Opens the engines; nothing works yet. */
export async function openInstallation(): Promise<TestInstallation> {
  const dir = await mkdtemp(join(tmpdir(), 'house-'));
  const events = await openEmbeddedEventStore({ dir });
  const reads = await openEmbeddedReadStore({ dir });
  const bus = await openEmbeddedBus({ dir, onError: () => undefined });
  const lines: { msg: string }[] = [];
  const logger = pino(
    { level: 'info' },
    { write: (line: string) => void lines.push(JSON.parse(line) as { msg: string }) },
  );
  const methods: TestInstallation['methods'] = new Map();
  const contacts: TestInstallation['contacts'] = new Map([
    ['buyer', { name: 'Ann', phone_number: null, device_tokens: [], locale: null }],
  ]);
  const subjects = memorySubjects();
  const closers: (() => Promise<void>)[] = [];
  const deps: ProcessorDeps = {
    events,
    records: reads.records,
    bus,
    logger,
    paymentMethod: async (reference) => methods.get(reference) ?? { kind: 'card', prepaid: false, customer: null },
    contact: async (userId) => contacts.get(userId),
    numberOf: async (id) =>
      id.startsWith('phone') ? numberOf(Number(id.slice(5))) : (await subjects.secrets([id])).get(id)?.toString(),
    // Purchases of tests hold their messages in the clear.
    openText: async (message) => message,
    launchUrl: (giftId) => `http://gift.test/g/${giftId}`,
    retryPolicy: { retryMs: 5, retryAtMostMs: 40, answerMs: 2_000 },
    leaseMs: 300,
  };

  const installation: TestInstallation = {
    ...openTestLog(events),
    dir,
    reads,
    bus,
    methods,
    contacts,
    subjects,
    lines,
    deps,
    process(replaced) {
      const processors = runProcessors({ ...deps, ...replaced });
      closers.push(() => processors.close());
      return processors;
    },
    async work(providers) {
      const workers = await startWorkers({ bus, records: reads.records, logger, ...providers });
      closers.push(() => workers.close());
      return workers;
    },
    async until(holds) {
      const deadline = performance.now() + DEADLINE_MS;
      while (!(await holds())) {
        if (performance.now() > deadline)
          throw new Error(
            `did not come to hold within ${DEADLINE_MS} ms; the log says:\n${lines
              .map((line) => JSON.stringify(line))
              .join('\n')
              .slice(-4_000)}`,
          );
        await sleep(5);
      }
    },
    async close() {
      for (const close of closers.toReversed()) await close();
      await bus.close();
      await reads.close();
      await events.close();
      await rm(dir, { recursive: true });
    },
  };
  return installation;
}
