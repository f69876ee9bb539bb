/**
 * The troubles that the runbook's chapters are about: the service in one of them, and the chapter's commands, run where
 * it is.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importCatalogue } from '../../../src/import/importCatalogue.js';
import { loadConfig } from '../../../src/service/config.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { openLog } from '../../../src/service/engines.js';
import { loadKeys } from '../../../src/service/keys.js';
import { withLogIn } from '../engines/eventStoreFolder.js';
import { purchaseOf } from './giftFlow.js';
import { GIFT } from './programs.js';
import { readRunbook, runCommand } from './runbook.js';
import { type Reply, request, type ServiceProcess, startProcess, userTokenOf } from './service.js';
import { CATALOGUE } from '../fixtures/testCatalogue.js';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/** The runbook's commands, by chapter. */
export const RUNBOOK = readRunbook(join(ROOT, 'docs/runbook.md'));

/** A chapter's trouble: a data folder, processes of the service, and what a command line needs. */
export interface Trouble {
  readonly dir: string;
  readonly env: Record<string, string>;
  /** Starts a process of the service. */
  start(more?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
  /** Runs the chapter's commands from where it is, up to the first that `last` matches, or the end. */
  follow(last?: RegExp): Promise<void>;
  /** Notes an access token of support for the commands. */
  signIn(url: string): Promise<void>;
  /** As `ann`. */
  ask(url: string, method: string, path: string, body?: object): Promise<Reply>;
}

type Settings = Readonly<Record<string, string>>;

/** A data folder with a catalogue, and the processes of the service that were started on it. */
export interface Installation {
  readonly dir: string;
  readonly env: Settings;
  start(more?: Settings): Promise<ServiceProcess>;
  close(): Promise<void>;
}

const isInstallation = (where: Settings | Installation): where is Installation => typeof where.start === 'function';

/** Makes an installation. */
export async function openInstallation(settings: Settings): Promise<Installation> {
  const dir = mkdtempSync(join(tmpdir(), 'gift-runbook-'));
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'gift'), `#!/bin/sh\nexec "${process.execPath}" "${GIFT}" "$@"\n`);
  chmodSync(join(bin, 'gift'), 0o755);
  const env: Record<string, string> = {
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    DATA_DIR: join(dir, 'data'),
    BACKUPS: dir,
    CLIENT: 'app',
    SECRET: 'app-secret',
    ...settings,
  };
  const { PATH: _path, BACKUPS: _b, CLIENT: _c, SECRET: _s, ...service } = env;
  const processes: ServiceProcess[] = [];
  const close = async (): Promise<void> => {
    for (const one of processes.reverse()) await one.end('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const config = loadConfig(service);
    const { hashKey } = loadKeys(config);
    const { events, subjects } = await openLog(config);
    await importCatalogue(
      { events, hash: keyedHash(hashKey), subjects, now: () => new Date().toISOString() },
      CATALOGUE,
      {
        by: { user: 'cli:test' },
      },
    );
    await events.close();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    dir,
    env,
    async start(more = {}) {
      const started = await startProcess({ ...service, PORT: '0', CHARGE_WAIT_MS: '300', ...more });
      processes.push(started);
      return started;
    },
    close,
  };
}

/**
 * Everything that the commands of a chapter are run in. @throws Error where a command shows something else than the
 * runbook says, or was not run
 * @param where settings of an installation of its own; or one that is there, and stays
 */
export async function inTrouble(
  chapter: string,
  where: Settings | Installation,
  use: (trouble: Trouble) => Promise<void>,
): Promise<void> {
  const installation = isInstallation(where) ? where : await openInstallation(where);
  const env = { ...installation.env };
  const waiting = [...(RUNBOOK.get(chapter) ?? [])];
  const tokens = new Map<string, string>();
  try {
    await use({
      dir: installation.dir,
      env,
      async start(more = {}) {
        const started = await installation.start(more);
        if (started.url !== undefined) Object.assign(env, { API: started.url, METRICS: started.url });
        return started;
      },
      async follow(last) {
        for (let command = waiting.shift(); command !== undefined; command = waiting.shift()) {
          await runCommand(command, env);
          if (last?.test(command.command) === true) return;
        }
        assert.equal(last, undefined, `${chapter}: no command is like ${String(last)}`);
      },
      async signIn(url) {
        env['TOKEN'] = await userTokenOf(url, 'sue');
      },
      async ask(url, method, path, body) {
        if (!tokens.has(url)) tokens.set(url, await userTokenOf(url, 'ann'));
        return request(url + path, method, { token: tokens.get(url) ?? '', ...(body === undefined ? {} : { body }) });
      },
    });
    assert.deepEqual(
      waiting.map(({ line, command }) => `${line}: ${command}`),
      [],
      'every command of the chapter has been run',
    );
  } finally {
    if (installation !== where) await installation.close();
  }
}

/** Buys a gift, by default one to be shared; notes it and its transaction for the commands. */
export async function buyInto({ env, ask }: Trouble, url: string, receivers?: readonly object[]): Promise<string> {
  const reply = await ask(url, 'POST', '/api/v2/transactions', purchaseOf('latte', receivers));
  assert.equal(reply.status, 201, reply.text);
  Object.assign(env, { TRANSACTION: reply.json.data.id as string, GIFT: reply.json.data.gifts[0] as string });
  return env['GIFT'] ?? '';
}

/** How many events the gift's stream has. */
export const readLog = (dataDir: string, gift: string): Promise<number> =>
  withLogIn(dataDir, async (log) => (await log.read(`gift-${gift}`)).length);
