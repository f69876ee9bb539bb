/** The log of an import, and its keys: all are made where missing, except by a dry run. */
import { rmSync } from 'node:fs';
import { randomBytes, randomUUID } from '../lib/world.js';
import type { Config } from '../service/config.js';
import { openLog, refuseForeignFiles } from '../service/engines.js';
import type { Log } from '../service/personal.js';
import { refuseUnlessKeysFit } from '../service/keysCheck.js';
import { findHashKey, loadKeys } from '../service/keys.js';
import { temporaryFolder } from '../lib/files/folders.js';
import type { Subjects } from '../runtime/personal/index.js';
import { openErasures } from '../ops/people/index.js';
import { hasEventLog } from './dataFolder.js';
import { joinClock } from './engines.js';
import { type Terminal, writeLines } from './terminal.js';

interface ImportLog extends Pick<Log, 'events' | 'subjects'> {
  /** The log is new: the folder may be a mistake. */
  readonly fresh: boolean;
  /** @throws EngineError where the log was made with another key; UnavailableError */
  hashKey(): Promise<Buffer>;
  /** Ids of users whose erasure has begun or is done, as the key store has them. @throws UnavailableError */
  erasedUsers(): Promise<ReadonlySet<string>>;
  close(): Promise<void>;
}

/** @throws CommandFailure, DataFileError, EngineError, UnavailableError */
export async function openImportLog(
  { stderr }: Pick<Terminal, 'stderr'>,
  config: Config,
  dryRun: boolean,
): Promise<ImportLog> {
  const { dataDir, eventStoreUrl } = config;
  const fresh = eventStoreUrl === undefined && !hasEventLog(dataDir);
  refuseForeignFiles(config);
  const passing = fresh && dryRun ? temporaryFolder('gift-dry-run-') : undefined;
  const remove = (): void => {
    if (passing !== undefined) rmSync(passing, { recursive: true, force: true });
  };
  try {
    const log = await openLog(passing === undefined ? config : { dataDir: passing });
    const { events, subjects } = log;
    if (passing === undefined) await joinClock(config, events);
    if (passing !== undefined)
      await writeLines(stderr, [`there is no event log in ${dataDir}: shown is what a first import would do`]);
    return {
      events,
      subjects: dryRun && findHashKey(config) === undefined ? withoutKeys(subjects) : subjects,
      fresh,
      async hashKey() {
        await refuseUnlessKeysFit(log, () => findHashKey(config));
        return dryRun ? (findHashKey(config) ?? randomBytes(32)) : loadKeys(config).hashKey;
      },
      erasedUsers: async () => erasedUsers(openErasures(log)),
      async close() {
        await events.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** Subjects of a dry run without keys, which makes none: new ids are proposed, since no subject can be recognised. */
function withoutKeys(subjects: Subjects): Subjects {
  const ids = new Map<string, string>();
  return {
    ...subjects,
    propose: async (names) =>
      names.map(({ kind, text }) => {
        const name = `${kind} ${text}`;
        const id = ids.get(name) ?? randomUUID();
        ids.set(name, id);
        return { id };
      }),
  };
}

/** Ids of users whose erasure has begun. @throws UnavailableError */
export async function erasedUsers(erasures: Pick<ReturnType<typeof openErasures>, 'stored'>): Promise<Set<string>> {
  const erased = new Set<string>();
  for await (const { person, ...erasure } of erasures.stored()) {
    const begun = erasure.due_at === undefined || (erasure.started_at ?? erasure.done_at) !== undefined;
    if (person.kind === 'user' && begun && erasure.withdrawn_at === undefined) erased.add(person.userId);
  }
  return erased;
}
