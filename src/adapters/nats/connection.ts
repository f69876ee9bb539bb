import { connect, type NatsConnection, NatsError } from 'nats';
import { EngineError, NoAnswerError } from '../../lib/engineError.js';

const SETTING = 'NATS_URL';
/** The oldest tested server. Before 2.2 there are no headers, and no answer for a subject without responders. */
const LEAST_VERSION = [2, 9] as const;

export async function connected(url: string): Promise<NatsConnection> {
  const servers = url.split(',').map((one) => new URL(one.trim()));
  const [first] = servers;
  const { username = '', password = '' } = first ?? {};
  const credentials =
    password === ''
      ? username === ''
        ? {}
        : { token: decodeURIComponent(username) }
      : { user: decodeURIComponent(username), pass: decodeURIComponent(password) };
  let connection;
  try {
    connection = await connect({
      servers: servers.map(({ host }) => host),
      ...credentials,
      ...(first?.protocol === 'tls:' ? { tls: {} } : {}),
      maxReconnectAttempts: -1,
      reconnectTimeWait: 250,
      reconnectJitter: 250,
      pingInterval: 2_000,
      maxPingOut: 2,
      timeout: 5_000,
    });
  } catch (error) {
    throw faultOf(error);
  }
  const version = connection.info?.version ?? '';
  if (!isOld(version)) return connection;
  await connection.close();
  throw new EngineError(SETTING, `NATS ${version} is too old: use ${LEAST_VERSION.join('.')} or later`);
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
