/**
 * Settings (docs/settings.md): environment variables, checked at start, all faults reported at
 * once.
 */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import ipaddr from 'ipaddr.js';
import {
  anyText,
  type Kind,
  matching,
  oneOf,
  optional,
  partsOf,
  readSettings,
  setting,
  type Values,
  webAddress,
  wholeNumber,
} from '../lib/settings.js';
import type { Hours } from '../domain/receiverZone.js';
import { cosignatureVerifier, EvidenceError } from '../ops/evidence/index.js';
import { PROVIDER_SETTINGS, type ProviderSettings, providerSettings } from '../providers/settings.js';
import { telemetryFaults } from '../tracing/settings.js';

/** The roles of a process, in this order: serve HTTP, fold read models, run process managers, work on bus messages. */
export const ROLES = ['api', 'projector', 'processor', 'worker'] as const;

export type ProcessRole = (typeof ROLES)[number];

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const KEY_BYTES = 32;

const roles: Kind<ReadonlySet<ProcessRole>> = (text, fault) => {
  const found = new Set<ProcessRole>();
  for (const word of partsOf(text)) {
    const role = ROLES.find((one) => one === word);
    if (role === undefined) fault(`must be a list of ${ROLES.join(', ')}; ${JSON.stringify(word)} is none of them`);
    else found.add(role);
  }
  return found;
};

const MOST_PROCESSES = 64;

const processCount: Kind<number> = (text, fault) =>
  text === 'auto'
    ? Math.min(availableParallelism(), MOST_PROCESSES)
    : wholeNumber(1, MOST_PROCESSES)(text, (problem) => fault(`must be auto, or ${problem.replace(/^must be /, '')}`));

const cidrs: Kind<readonly string[]> = (text, fault) => {
  const list = partsOf(text).filter((cidr) => cidr !== '');
  for (const cidr of list)
    // "10/8" would be read as 0.0.0.10/8, and 010.0.0.0/8 as 8.0.0.0/8.
    if (!ipaddr.IPv4.isValidCIDRFourPartDecimal(cidr) && !ipaddr.IPv6.isValidCIDR(cidr))
      fault(`must be a list of CIDRs such as 10.0.0.0/8; ${JSON.stringify(cidr)} is none`);
  return list;
};

const origins: Kind<readonly string[]> = (text, fault) => {
  const list = partsOf(text);
  for (const origin of list)
    if (webAddress(origin)?.origin !== origin)
      fault(
        `must be a list of origins as browsers send them, such as https://shop.example; ${JSON.stringify(origin)} is none`,
      );
  return list;
};

/** An http or https address, used unchanged: a slash at the end may be part of it. */
const address: Kind<string> = (text, fault) => {
  if (webAddress(text) !== undefined) return text;
  fault(`must be an http or https address without query, not ${JSON.stringify(text)}`);
  return undefined;
};

const keys: Kind<readonly string[]> = (text, fault) => {
  const list = partsOf(text);
  if (list.some((key) => Buffer.byteLength(key) < KEY_BYTES))
    fault(`must be a comma-separated list of keys of at least ${KEY_BYTES} bytes each`);
  return list;
};

const key: Kind<string> = (text, fault) => {
  if (Buffer.byteLength(text) < KEY_BYTES) fault(`must have at least ${KEY_BYTES} bytes`);
  return text;
};

interface WitnessAddress {
  /** The witness' address, without the path `/add-checkpoint`. */
  readonly url: string;
  /** The verifier key of the witness' cosignatures, as text. */
  readonly key: string;
}

const witnesses: Kind<readonly WitnessAddress[]> = (text, fault) => {
  const list: WitnessAddress[] = [];
  for (const part of partsOf(text)) {
    const [url = '', key = '', ...rest] = part.split(/\s+/);
    try {
      if (rest.length > 0 || webAddress(url) === undefined) throw new EvidenceError('its address is none');
      cosignatureVerifier(key);
      list.push({ url, key });
    } catch (error) {
      if (!(error instanceof EvidenceError)) throw error;
      fault(
        `must be a list of addresses, each with a space and its key, and ${JSON.stringify(part)} is not: ${error.message}`,
      );
    }
  }
  return list;
};

const MOST_REMINDER_DAYS = 365;

/** Days before a gift's last valid day, in descending order: the latest reminder is the last one. */
const reminderDays: Kind<readonly number[]> = (text, fault) => {
  if (text === 'none') return [];
  const days = partsOf(text).map((part) => (/^\d{1,3}$/.test(part) ? Number(part) : Number.NaN));
  if (days.every((day) => day >= 1 && day <= MOST_REMINDER_DAYS)) return [...new Set(days)].sort((a, b) => b - a);
  fault(`must be none, or a list of days from 1 to ${MOST_REMINDER_DAYS}, not ${JSON.stringify(text)}`);
  return undefined;
};

const hours: Kind<Hours> = (text, fault) => {
  const [, ...found] = /^([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|24:00)$/.exec(text) ?? [];
  const [hour = 0, minute = 0, endHour = 24, endMinute = 0] = found.map((part) =>
    part === undefined ? undefined : Number(part),
  );
  const [from, to] = [hour * 60 + minute, endHour * 60 + endMinute];
  if (found.length > 0 && to - from >= 60) return { from, to };
  fault(`must be hours of a day, an hour apart at least, such as 09:00-20:00, not ${JSON.stringify(text)}`);
  return undefined;
};

const flag: Kind<boolean> = (text, fault) => {
  if (text !== '0' && text !== '1') fault(`must be 0 or 1, not ${JSON.stringify(text)}`);
  return text === '1';
};

/** Addresses of NATS servers. Faults never show the text, since it may contain a password. */
const natsAddresses: Kind<string> = (text, fault) => {
  const good = partsOf(text).every((one) => URL.canParse(one) && ['nats:', 'tls:'].includes(new URL(one).protocol));
  if (!good) fault('must be an address that begins with nats:// or tls://');
  // The client knows one choice for all servers: the others would silently be without TLS, or not be reached.
  else if (new Set(partsOf(text).map((one) => new URL(one).protocol)).size > 1)
    fault('must have addresses that all begin with nats://, or all with tls://');
  else if (!partsOf(text).every((one) => isDecodable(new URL(one))))
    fault('must have the signs in its user and password percent-encoded');
  return text;
};

/** Addresses checked by a pattern only: Node can't parse URLs with several hosts, the engines' clients can. */
const cluster = (pattern: RegExp, example: string): Kind<string> => matching(pattern, `an address such as ${example}`);

const mongoAddress = cluster(/^mongodb(\+srv)?:\/\/[^/]/, 'mongodb://host:27017/gift');

const keyStoreAddress: Kind<string> = (text, fault) => (text === 'embedded' ? text : mongoAddress(text, fault));

/** Durations in `Ms` are milliseconds, those in `Ttl`, `Age` or `Delay` seconds. */
const SETTINGS = {
  roles: setting<ReadonlySet<ProcessRole>>(
    'ROLES',
    roles,
    new Set(ROLES),
    'what this process does: a list of `api`, `projector`, `processor`, `worker`. Several processes may share one `DATA_DIR`',
    'all',
  ),
  processes: setting(
    'PROCESSES',
    processCount,
    1,
    'how many processes with these roles serve behind the same ports ([which use all processors](deployment.md#several-processes-behind-one-port)); `auto`: as many as there are processors, at most 64',
  ),
  port: setting('PORT', wholeNumber(0, 65_535), 3000, 'port of the API; 0: any free one'),
  host: setting('HOST', anyText, '127.0.0.1', 'address that the process listens on'),
  dataDir: setting('DATA_DIR', anyText, './data', "folder of the embedded engines' files and of the keys"),
  publicUrl: optional(
    'PUBLIC_URL',
    address,
    'how callers reach the service, which is what links start with; to be set where `HOST` is 0.0.0.0 or ::, where a start without it warns',
    '`http://HOST:PORT`',
  ),
  appUrl: optional('APP_URL', address, "where the page behind a gift's `launch_url` leads", 'no link'),
  tokenKeys: optional(
    'TOKEN_KEY',
    keys,
    'keys of access tokens, comma-separated, at least 32 bytes each: the first signs, all verify. Must be set where `EVENTSTORE_URL` is',
    'made and kept in `DATA_DIR`',
  ),
  hashKey: optional(
    'HASH_KEY',
    key,
    'key of the hashes in stream names and the key store, at least 32 bytes; losing it loses usernames and phone numbers, and ends all shortcodes and links that were sent. With another key than the log was made with, neither the service nor an import starts. Must be set where `EVENTSTORE_URL` is',
    'made and kept in `DATA_DIR`',
  ),
  masterKeys: optional(
    'MASTER_KEY',
    keys,
    'keys that wrap the key store, comma-separated, at least 32 bytes each: the first wraps, all unwrap. Losing them loses all personal data. Must be set where `EVENTSTORE_URL` is',
    'made and kept in `DATA_DIR`',
  ),
  sealKeys: optional(
    'SEAL_KEY',
    keys,
    'keys that sign the heads of the tree over the log, comma-separated, at least 32 bytes each: all sign, so that a new one is listed behind the old one before it takes its place. Must be set where `EVENTSTORE_URL` is',
    'made and kept in `DATA_DIR`',
  ),
  sealDir: optional(
    'SEAL_DIR',
    anyText,
    'folder of the tree over the log, with a folder for each log: tiles and the latest signed head, as files that any web server can serve. One for all processes with the roles `projector` and `api`',
    '`tree` in `DATA_DIR`',
  ),
  sealEveryMs: setting(
    'SEAL_EVERY_MS',
    wholeNumber(100, 3_600_000),
    10_000,
    'the least time between two signed heads, ms',
  ),
  sealPublic: setting<boolean>(
    'SEAL_PUBLIC',
    flag,
    false,
    '1: `/checkpoint` and tiles of hashes are answered without a token; leaves, which name streams, never are',
    '0',
  ),
  sealWitnesses: setting<readonly WitnessAddress[]>(
    'SEAL_WITNESSES',
    witnesses,
    [],
    'witnesses that are asked to cosign each head, comma-separated: the address before `/add-checkpoint`, a space, and the key of its cosignatures',
    'none',
  ),
  trustedProxies: setting<readonly string[]>(
    'TRUSTED_PROXIES',
    cidrs,
    [],
    'CIDRs, comma-separated, whose `X-Forwarded-For` is believed',
    'none',
  ),
  corsOrigins: setting<readonly string[]>(
    'CORS_ORIGINS',
    origins,
    [],
    'origins, comma-separated, whose pages may call the API from browsers, each as `https://shop.example`, without a path',
    'none',
  ),
  webhookPrivateAddresses: setting<'refuse' | 'allow'>(
    'WEBHOOK_PRIVATE_ADDRESSES',
    oneOf(['refuse', 'allow']),
    'refuse',
    '`allow`: webhooks may go to addresses that are not public, and to `http://`, for development',
  ),
  webhookRefusedNetworks: setting<readonly string[]>(
    'WEBHOOK_REFUSED_NETWORKS',
    cidrs,
    [],
    'CIDRs, comma-separated, that webhooks never go to, whatever else is allowed: public addresses that mean something only in your network',
    'none',
  ),
  sandbox: setting<boolean>(
    'SANDBOX',
    flag,
    false,
    '1: clients may move the time of the whole service ahead, and reset it ([sandbox](api/sandbox.md)). With simulated providers alone',
    '0',
  ),
  clientRateLimit: setting(
    'CLIENT_RATE_LIMIT',
    wholeNumber(0, 1_000_000_000),
    600_000,
    'requests a minute of one client and its users; 0: no limit ([limits](limits.md))',
  ),
  userRateLimit: setting(
    'USER_RATE_LIMIT',
    wholeNumber(0, 1_000_000_000),
    60_000,
    'requests a minute of one user; 0: no limit',
  ),
  opsRateLimit: setting(
    'OPS_RATE_LIMIT',
    wholeNumber(0, 1_000_000_000),
    6_000,
    'requests a minute under `/ops` of one user; 0: no limit',
  ),
  erasuresPerDay: setting(
    'ERASURES_PER_DAY',
    wholeNumber(0, 1_000_000),
    20,
    'erasures that one user of support may request and approve in 24 hours; 0: no limit',
  ),
  personExportsPerDay: setting(
    'PERSON_EXPORTS_PER_DAY',
    wholeNumber(0, 1_000_000),
    50,
    'exports of persons by one user of support in 24 hours; 0: no limit',
  ),
  personalReadsPerDay: setting(
    'PERSONAL_READS_PER_DAY',
    wholeNumber(0, 1_000_000),
    1_000,
    'calls under `/ops` by one user in 24 hours that show personal fields; 0: no limit',
  ),
  replacementsPerDay: setting(
    'REPLACEMENTS_PER_DAY',
    wholeNumber(0, 1_000_000),
    20,
    'gifts that one user of support may replace at no charge in 24 hours; 0: no limit',
  ),
  reversalsPerDay: setting(
    'REVERSALS_PER_DAY',
    wholeNumber(0, 1_000_000),
    50,
    'redemptions that one user of support may reverse in 24 hours; 0: no limit',
  ),
  erasureDelay: setting(
    'ERASURE_DELAY',
    wholeNumber(0, 2_592_000),
    259_200,
    'how long an erasure that is requested over HTTP waits, in which it can be withdrawn, unless another user of support approves it, seconds',
  ),
  addressRateLimit: setting(
    'ADDRESS_RATE_LIMIT',
    wholeNumber(0, 1_000_000_000),
    12_000,
    'requests a minute without a valid token by one address, as `TRUSTED_PROXIES` tells it; 0: no limit',
  ),
  requestWaitMs: setting(
    'REQUEST_WAIT_MS',
    wholeNumber(0, 60_000),
    100,
    'how long a request may wait until it is begun, while requests come faster than the process can answer them, before it is answered 503, milliseconds; 0: no limit',
  ),
  unknownGiftsPerCaller: setting(
    'UNKNOWN_GIFTS_PER_CALLER',
    wholeNumber(0, 1_000_000),
    200,
    'look-ups of unknown gifts in 15 minutes by one user of one client; 0: no limit',
  ),
  unknownGiftsPerAddress: setting(
    'UNKNOWN_GIFTS_PER_ADDRESS',
    wholeNumber(0, 1_000_000),
    400,
    'look-ups of unknown gifts in 15 minutes by one address, as `TRUSTED_PROXIES` tells it; 0: no limit',
  ),
  enginesWaitMs: setting(
    'ENGINES_WAIT_MS',
    wholeNumber(0, 3_600_000),
    60_000,
    'how long a start waits for servers of `EVENTSTORE_URL`, `MONGODB_URL`, `KEYS_URL` or `NATS_URL` that do not answer, with a line in the log every two seconds; 0: it ends at once',
  ),
  chargeWaitMs: setting(
    'CHARGE_WAIT_MS',
    wholeNumber(0, 60_000),
    2_000,
    'how long a purchase waits for its charge before it answers',
  ),
  reminderDays: setting<readonly number[]>(
    'REMINDER_DAYS',
    reminderDays,
    [30, 7],
    "how many days before a gift's last valid day its holder is reminded, comma-separated; `none`: never",
    '30,7',
  ),
  reminderHours: setting<Hours>(
    'REMINDER_HOURS',
    hours,
    { from: 9 * 60, to: 20 * 60 },
    "the hours of the receiver's day in which reminders are sent",
    '09:00-20:00',
  ),
  accessTokenTtl: setting('ACCESS_TOKEN_TTL', wholeNumber(1, 86_400), 900, 'life of an access token, seconds'),
  refreshTokenTtl: setting(
    'REFRESH_TOKEN_TTL',
    wholeNumber(1, 31_536_000),
    2_592_000,
    'life of a refresh token, seconds',
  ),
  sessionMaxAge: setting(
    'SESSION_MAX_AGE',
    wholeNumber(1, 31_536_000),
    7_776_000,
    'life of a session, however often it is refreshed, seconds',
  ),
  logLevel: setting('LOG_LEVEL', oneOf(LOG_LEVELS), 'info', `lowest level that is logged: ${LOG_LEVELS.join(', ')}`),
  metricsPort: optional(
    'METRICS_PORT',
    wholeNumber(0, 65_535),
    '`/metrics` and the whole of `/readyz` on this port alone; `PORT` then answers `/healthz`, and `/readyz` with its `status`',
    'beside the API',
  ),
  opsPort: optional(
    'OPS_PORT',
    wholeNumber(0, 65_535),
    '`/ops` and its description on this port alone, of processes with the role `api`; tokens are got where they always are',
    'beside the API',
  ),
  eventStoreUrl: optional(
    'EVENTSTORE_URL',
    cluster(/^esdb(\+discover)?:\/\/[^/]/, 'esdb://host:2113?tls=false'),
    '`esdb://…`: EventStoreDB 23.10, or 24.10.5 or later, or KurrentDB 25.0.1 or later ([versions](deployment.md#versions))',
    'the embedded event store',
  ),
  mongodbUrl: optional(
    'MONGODB_URL',
    mongoAddress,
    '`mongodb://…`: MongoDB; names the database, default `gift`',
    'the embedded read store',
  ),
  keysUrl: optional(
    'KEYS_URL',
    keyStoreAddress,
    '`mongodb://…`: the key store, in a database of its own, never among the backups of another; `embedded`: `keys.db` in `DATA_DIR`. Must be set where `EVENTSTORE_URL` is',
    '`embedded`',
  ),
  natsUrl: optional(
    'NATS_URL',
    natsAddresses,
    '`nats://…` or `tls://…`, several comma-separated, with user:password@ or token@: NATS',
    'the in-process bus',
  ),
};

/** All settings in the order of docs/settings.md, without OpenTelemetry's own variables. */
export const ALL_SETTINGS = [...Object.values(SETTINGS), ...PROVIDER_SETTINGS];

/**
 * `dataDir` and `sealDir` are absolute, `publicUrl` has no slash at its end. Secret: `tokenKeys`, `hashKey`,
 * `masterKeys`, `sealKeys`, and addresses of engines, which may hold credentials.
 */
export interface Config extends Values<typeof SETTINGS>, ProviderSettings {}

/** The settings have faults; each text in `faults` names a variable and the change to make. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(`settings are wrong:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
    this.faults = faults;
  }
}

/** Reads all settings; an empty variable counts as absent. @throws ConfigError with every fault, without secrets */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const faults: string[] = [];
  const text = (name: string): string | undefined => {
    const value = env[name]?.trim();
    return value === '' ? undefined : value;
  };
  const values = readSettings(SETTINGS, text, faults);
  const { port, metricsPort, opsPort, publicUrl, sealDir } = values;
  const ports = Object.entries({ PORT: port, METRICS_PORT: metricsPort, OPS_PORT: opsPort });
  for (const [at, [name, one]] of ports.entries()) {
    const taken = ports.slice(0, at).find(([, other]) => other === one);
    if (values.roles.has('api') && taken !== undefined && one !== undefined && one !== 0)
      faults.push(`${name} must be another than ${taken[0]}, which is ${one}`);
  }
  if (text('EVENTSTORE_URL') !== undefined)
    for (const name of ['TOKEN_KEY', 'HASH_KEY', 'MASTER_KEY', 'SEAL_KEY', 'KEYS_URL'])
      if (text(name) === undefined)
        faults.push(
          `${name} must be set where EVENTSTORE_URL is: nothing of it is made up for an installation that others share`,
        );
  const providers = providerSettings(text, faults);
  if (values.sandbox && (providers.payments !== 'simulated' || providers.notifications !== 'simulated'))
    faults.push(
      'SANDBOX moves time ahead, which no real provider follows: set PAYMENTS=simulated and NOTIFICATIONS=simulated, or SANDBOX=0',
    );
  faults.push(...telemetryFaults(env));
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    ...values,
    dataDir: resolve(values.dataDir),
    ...(sealDir === undefined ? {} : { sealDir: resolve(sealDir) }),
    ...(publicUrl === undefined ? {} : { publicUrl: publicUrl.replace(/\/+$/, '') }),
    ...providers,
  };
}

function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
