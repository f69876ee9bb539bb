/** The settings (decisions 10): environment variables, read once and checked at start, every fault named at once. */
import ipaddr from 'ipaddr.js';
import { resolve } from 'node:path';
import { type ProviderSettings, providerSettings } from '../providers/settings.js';
import { telemetryFaults } from '../tracing/settings.js';

/** What a process does: serves HTTP, folds read models, runs process managers, answers on the bus. */
export const ROLES = ['api', 'projector', 'processor', 'worker'] as const;

/** One of the things a process does. */
export type ProcessRole = (typeof ROLES)[number];

/** Levels of the log, in pino's words. */
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** The checked settings. Durations ending in `Ms` are milliseconds, those ending in `Ttl` or `Age` seconds. */
export interface Config extends ProviderSettings {
  /** 0: any free port. */
  readonly port: number;
  readonly host: string;
  /** Absolute path of the embedded engines' files. */
  readonly dataDir: string;
  readonly roles: ReadonlySet<ProcessRole>;
  /** Without a trailing slash; absent: `http://HOST:PORT`. */
  readonly publicUrl?: string;
  /** Where the page behind a gift's `launch_url` sends its reader. */
  readonly appUrl?: string;
  /** CIDRs whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  readonly chargeWaitMs: number;
  readonly accessTokenTtl: number;
  readonly refreshTokenTtl: number;
  readonly sessionMaxAge: number;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** How long a start waits for engines that do not answer. */
  readonly enginesWaitMs: number;
  /** Health and metrics are answered on this port alone. */
  readonly metricsPort?: number;
  /** Secret. Each at least 32 bytes; the first signs, all verify. Absent: made and kept in `dataDir`. */
  readonly tokenKeys?: readonly string[];
  /** Secret. At least 32 bytes. Absent: made and kept in `dataDir`. */
  readonly hashKey?: string;
  /** EventStoreDB instead of the embedded event store. May hold credentials: secret. */
  readonly eventStoreUrl?: string;
  /** MongoDB instead of the embedded read store; names the database, default `gift`. May hold credentials: secret. */
  readonly mongodbUrl?: string;
  /** NATS instead of the in-process bus. May hold credentials: secret. */
  readonly natsUrl?: string;
}

/** The settings are wrong: `faults` names every one and says what to change. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(`settings are wrong:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
    this.faults = faults;
  }
}

const KEY_BYTES = 32;

function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/**
 * Reads the settings. An empty variable counts as absent. @throws ConfigError naming every fault; it never shows a
 * secret's value.
 */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const faults: string[] = [];
  const text = (name: string): string | undefined => {
    const value = env[name]?.trim();
    return value === '' ? undefined : value;
  };
  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const value = text(name);
    if (value === undefined) return fallback;
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    faults.push(`${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(value)}`);
    return fallback;
  };
  const choice = <T extends string>(name: string, choices: readonly T[], fallback: T): T => {
    const value = text(name);
    if (value === undefined) return fallback;
    const found = choices.find((one) => one === value);
    if (found === undefined) faults.push(`${name} must be one of ${choices.join(', ')}, not ${JSON.stringify(value)}`);
    return found ?? fallback;
  };
  /** As it was written: a slash at the end may be part of what it names. */
  const url = (name: string): string | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    const parsed = URL.canParse(value) ? new URL(value) : undefined;
    if (parsed !== undefined && /^https?:$/.test(parsed.protocol) && parsed.search === '' && parsed.hash === '')
      return value;
    faults.push(`${name} must be an http or https address without query, not ${JSON.stringify(value)}`);
    return undefined;
  };

  const roles = new Set<ProcessRole>();
  for (const word of (text('ROLES') ?? ROLES.join(',')).split(',').map((one) => one.trim())) {
    const role = ROLES.find((one) => one === word);
    if (role === undefined)
      faults.push(`ROLES must be a list of ${ROLES.join(', ')}; ${JSON.stringify(word)} is none of them`);
    else roles.add(role);
  }

  const trustedProxies = (text('TRUSTED_PROXIES') ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  for (const cidr of trustedProxies) {
    if (!ipaddr.isValidCIDR(cidr))
      faults.push(`TRUSTED_PROXIES must be a list of CIDRs such as 10.0.0.0/8; ${JSON.stringify(cidr)} is none`);
  }

  const tokenKeys = text('TOKEN_KEY')
    ?.split(',')
    .map((one) => one.trim());
  if (tokenKeys?.some((key) => Buffer.byteLength(key) < KEY_BYTES))
    faults.push(`TOKEN_KEY must be a comma-separated list of keys of at least ${KEY_BYTES} bytes each`);
  const hashKey = text('HASH_KEY');
  if (hashKey !== undefined && Buffer.byteLength(hashKey) < KEY_BYTES)
    faults.push(`HASH_KEY must have at least ${KEY_BYTES} bytes`);

  const engine = (name: string, protocols: readonly string[]): string | undefined => {
    const value = text(name);
    if (value === undefined) return undefined;
    // The value may hold a password: it is never shown.
    const good = value
      .split(',')
      .every((one) => URL.canParse(one.trim()) && protocols.includes(new URL(one.trim()).protocol));
    if (good && !value.split(',').every((one) => isDecodable(new URL(one.trim()))))
      faults.push(`${name} must have the signs in its user and password percent-encoded`);
    if (!good)
      faults.push(
        `${name} must be an address that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
      );
    return good ? value : undefined;
  };
  /** Addresses of several hosts are no URLs to Node; their own clients read them. */
  const cluster = (name: string, pattern: RegExp, example: string): string | undefined => {
    const value = text(name);
    if (value === undefined || pattern.test(value)) return value;
    faults.push(`${name} must be an address such as ${example}`);
    return undefined;
  };
  const natsUrl = engine('NATS_URL', ['nats:', 'tls:']);
  const eventStoreUrl = cluster('EVENTSTORE_URL', /^esdb(\+discover)?:\/\/[^/]/, 'esdb://host:2113?tls=false');
  const mongodbUrl = cluster('MONGODB_URL', /^mongodb(\+srv)?:\/\/[^/]/, 'mongodb://host:27017/gift');
  if (text('EVENTSTORE_URL') !== undefined) {
    for (const name of ['TOKEN_KEY', 'HASH_KEY']) {
      if (text(name) === undefined)
        faults.push(
          `${name} must be set where EVENTSTORE_URL is: nothing of it is made up for an installation that others share`,
        );
    }
  }
  const providers = providerSettings(text, faults);

  const publicUrl = url('PUBLIC_URL')?.replace(/\/+$/, '');
  const appUrl = url('APP_URL');
  const metricsPort = text('METRICS_PORT') === undefined ? undefined : integer('METRICS_PORT', 0, 0, 65_535);
  const port = integer('PORT', 3000, 0, 65_535);
  if (roles.has('api') && port !== 0 && port === metricsPort)
    faults.push(`METRICS_PORT must be another than PORT, which is ${port}`);
  faults.push(...telemetryFaults(env));
  const config: Config = {
    port,
    host: text('HOST') ?? '127.0.0.1',
    dataDir: resolve(text('DATA_DIR') ?? './data'),
    roles,
    ...(publicUrl === undefined ? {} : { publicUrl }),
    ...(appUrl === undefined ? {} : { appUrl }),
    trustedProxies,
    chargeWaitMs: integer('CHARGE_WAIT_MS', 2000, 0, 60_000),
    enginesWaitMs: integer('ENGINES_WAIT_MS', 60_000, 0, 3_600_000),
    accessTokenTtl: integer('ACCESS_TOKEN_TTL', 900, 1, 86_400),
    refreshTokenTtl: integer('REFRESH_TOKEN_TTL', 2_592_000, 1, 31_536_000),
    sessionMaxAge: integer('SESSION_MAX_AGE', 7_776_000, 1, 31_536_000),
    logLevel: choice('LOG_LEVEL', LOG_LEVELS, 'info'),
    ...(metricsPort === undefined ? {} : { metricsPort }),
    ...(tokenKeys === undefined ? {} : { tokenKeys }),
    ...(hashKey === undefined ? {} : { hashKey }),
    ...(eventStoreUrl === undefined ? {} : { eventStoreUrl }),
    ...(mongodbUrl === undefined ? {} : { mongodbUrl }),
    ...(natsUrl === undefined ? {} : { natsUrl }),
    ...providers,
  };
  if (faults.length > 0) throw new ConfigError(faults);
  return config;
}
