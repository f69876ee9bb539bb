import { connect, type ConnectionOptions, createInbox, type NatsConnection, NatsError } from 'nats';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { within } from '../../lib/async/within.js';
import { certificateFault, EngineError, NoAnswerError } from '../../lib/engineError.js';

const SETTING = 'NATS_URL';
/** The oldest tested server. Before 2.2 there are no headers, and no answer for a subject without responders. */
const LEAST_VERSION = [2, 9] as const;

/** Milliseconds in which one server must accept a connection. */
const CONNECT_MS = 5_000;

/**
 * Connects permanently: a connection that ends for any reason is made again.
 * @throws EngineError naming NATS_URL when no server answers, its certificate can't be verified, the credentials are
 * refused, or the server is too old; its user may not use subjects like `probe`, or replies
 */
export async function connected(url: string, probe: string): Promise<NatsConnection> {
  const servers = url.split(',').map((one) => new URL(one.trim()));
  const options = optionsOf(servers);
  await refuseUnlessUsable(options, probe);
  const connecting = connect({
    ...options,
    maxReconnectAttempts: -1,
    // Otherwise the second refusal of the credentials closes the connection.
    ignoreAuthErrorAbort: true,
    // Otherwise an address where no server answers now is never tried again.
    waitOnFirstConnect: true,
  });
  return within(connecting, CONNECT_MS * (servers.length + 1), () => {
    connecting.then((late) => late.close()).catch(() => undefined);
    throw faultOf(undefined);
  });
}

function optionsOf(servers: readonly URL[]): ConnectionOptions {
  const [first] = servers;
  const { username = '', password = '' } = first ?? {};
  const credentials =
    password === ''
      ? username === ''
        ? {}
        : { token: decodeURIComponent(username) }
      : { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
  return {
    servers: servers.map(({ host }) => host),
    ...credentials,
    ...(first?.protocol === 'tls:' ? { tls: {} } : {}),
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    pingInterval: 2_000,
    maxPingOut: 2,
    timeout: CONNECT_MS,
  };
}

/**
 * Tests the server with a connection of its own: a reconnecting one would never report why its first attempt is
 * refused.
 */
async function refuseUnlessUsable(options: ConnectionOptions, probe: string): Promise<void> {
  let trial;
  try {
    trial = await connect({ ...options, reconnect: false });
  } catch (error) {
    throw faultOf(error);
  }
  const version = trial.info?.version ?? '';
  try {
    if (isOld(version))
      throw new EngineError(SETTING, `NATS ${version} is too old: use ${LEAST_VERSION.join('.')} or later`);
    const refused = await refusedOf(trial, [probe, createInbox()]);
    if (refused !== undefined)
      throw new EngineError(
        SETTING,
        `its user may not ${refused}: let it publish and subscribe to gift.> and _INBOX.>`,
      );
  } finally {
    await trial.close();
  }
}

/**
 * What the server's permissions refuse of publishing and subscribing to some subjects; `undefined`: nothing. The client
 * drops a refused message and closes a refused subscription, and reports both only in its status.
 */
async function refusedOf(trial: NatsConnection, subjects: readonly string[]): Promise<string | undefined> {
  const refused: string[] = [];
  void watchRefusals(trial, refused);
  for (const subject of subjects) {
    trial.subscribe(subject, { callback: () => undefined });
    trial.publish(subject);
  }
  await within(trial.flush(), CONNECT_MS, () => undefined).catch((error: unknown) => {
    throw faultOf(error);
  });
  // Refusals come before the server's answer, and are passed on within the turn.
  await nextTurn();
  return refused[0];
}

/** Collects refusals, as long as there is the connection: its status never ends. */
async function watchRefusals(trial: NatsConnection, refused: string[]): Promise<void> {
  for await (const { permissionContext: context } of trial.status())
    if (context !== undefined)
      refused.push(`${context.operation === 'publish' ? 'publish' : 'subscribe'} to ${context.subject}`);
}

function faultOf(error: unknown): EngineError {
  const code = error instanceof NatsError ? error.code : '';
  if (code === 'AUTHORIZATION_VIOLATION')
    return new EngineError(
      SETTING,
      'the credentials are refused: check user and password, or the token, in the first address',
      error,
    );
  if (code === 'SERVER_OPT_NA')
    return new EngineError(
      SETTING,
      'the server has no TLS: begin the address with nats://, or give the server a certificate',
      error,
    );
  const unverified = certificateFault(error, SETTING, 'in NODE_EXTRA_CA_CERTS (a file, PEM)');
  if (unverified !== undefined) return unverified;
  return new NoAnswerError(
    SETTING,
    'no NATS server answers there: check the address, whether the server runs, and whether it has TLS (then it begins with tls://)',
    error,
  );
}

function isOld(version: string): boolean {
  const [major, minor] = (/^(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number);
  if (major === undefined || minor === undefined) return false;
  return major < LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor < LEAST_VERSION[1]);
}
