/**
 * Push by FCM's HTTP v1 API. The gift's id is each message's tag (Android, the web) or collapse id (APNs). So a repeat
 * replaces the message on the device, and another attempt may follow an unknown outcome.
 */
import { inParallel } from '../../lib/async/inParallel.js';
import { timeoutSignal } from '../../lib/world.js';
import { openCircuitBreaker, type RealProviderDeps } from '../circuitBreaker.js';
import { type SendReply, type SendRequest, notificationKey, secondsLeft } from '../../messages/notifications.js';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { neverSent, RefusedError, ProviderError } from '../providerErrors.js';
import { retryAfterMs } from '../../lib/retryAfter.js';
import { type GoogleAccount, googleTokens } from './googleToken.js';
import { AGAIN_MS, type Ledger } from './ledger.js';
import type { NotificationProvider } from './provider.js';
import { pushTextOf } from './text.js';

export interface FcmSettings extends Omit<GoogleAccount, 'tokenUrl'> {
  readonly projectId: string;
  /** Scheme, host and port; default Google's. */
  readonly apiUrl?: string;
  /** URL of access tokens; default Google's. */
  readonly tokenUrl?: string;
}

export interface FcmDeps extends RealProviderDeps {
  readonly ledger: Ledger;
  /** Milliseconds to wait for an attempt with an unknown outcome; default 15 s. */
  readonly settleMs?: number;
}

const PROVIDER = 'fcm';
const API_URL = 'https://fcm.googleapis.com';
const TOKEN_URL = 'https://oauth2.googleapis.com/token';
const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging';
const TIMEOUT_MS = 10_000;
const SETTLE_MS = 15_000;
/** Google's default pause, where an answer names none. */
const RATE_LIMIT_PAUSE_MS = 60_000;
const DEVICES_AT_ONCE = 8;

const INVALID_TOKEN = 'invalid device token (FCM INVALID_ARGUMENT)';

type DeviceAnswer = { readonly name: string } | { readonly dead: string };

type Fault = 'token' | 'payload' | 'unsaid';

/** A failure as FCM describes it: https://firebase.google.com/docs/cloud-messaging/error-codes */
interface FcmFailure {
  readonly code?: string;
  readonly fault: Fault;
}

export function fcmPush(
  settings: FcmSettings,
  { logger, ledger, now, timeoutMs = TIMEOUT_MS, settleMs = SETTLE_MS, circuitBreaker: options }: FcmDeps,
): NotificationProvider {
  const { projectId, clientEmail, privateKey, apiUrl = API_URL, tokenUrl = TOKEN_URL } = settings;
  const tokens = googleTokens({ clientEmail, privateKey, tokenUrl }, SCOPE, now, timeoutMs);
  const breaker = openCircuitBreaker(PROVIDER, logger, now, options);
  const url = `${apiUrl}/v1/projects/${encodeURIComponent(projectId)}/messages:send`;

  /** @throws RefusedError for a message that no device would get; RetryLaterError, ProviderError */
  const post = async (device: string, message: object): Promise<DeviceAnswer> => {
    const answer = await ask({ message: { token: device, ...message } });
    if (!('unsaid' in answer)) return answer;
    // FCM refuses bad tokens and bad messages with one code. An empty message, validated only, tells them apart.
    const emptied = await ask({ validate_only: true, message: { token: device } });
    if ('name' in emptied) throw new RefusedError(`FCM refuses the message (${answer.unsaid})`);
    return 'unsaid' in emptied ? { dead: INVALID_TOKEN } : emptied;
  };

  const ask = async (request: object): Promise<DeviceAnswer | { readonly unsaid: string }> => {
    const token = await tokens.token();
    let response: Response;
    let answer: unknown;
    try {
      response = await fetch(url, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(request),
        // A redirect would take what is personal to another address.
        redirect: 'manual',
        signal: timeoutSignal(timeoutMs),
      });
      // A proxy before FCM may refuse with an HTML page.
      answer = response.ok ? await response.json() : await response.json().catch(() => undefined);
    } catch (error) {
      throw new ProviderError('FCM did not answer', { outcomeUnknown: !neverSent(error), cause: error });
    }
    if (response.ok) {
      const name =
        answer instanceof Object && 'name' in answer && typeof answer.name === 'string' ? answer.name : undefined;
      if (name === undefined) throw new ProviderError('FCM answered without a name', { outcomeUnknown: true });
      return { name };
    }
    if (response.status === 401) tokens.forget(token);
    return refused(response, failureOf(answer), now);
  };

  /** Sends to all devices of the receiver; a success at one device is enough. */
  const sendAll = async (request: SendRequest): Promise<SendReply> => {
    const message = messageOf(request, now());
    const answers = new Map<string, DeviceAnswer>();
    const errors: unknown[] = [];
    await inParallel(request.to, DEVICES_AT_ONCE, async (device) => {
      try {
        answers.set(device, await breaker.run(() => post(device, message)));
      } catch (error) {
        errors.push(error);
      }
    });
    const sent = [...answers.values()].find((answer) => 'name' in answer);
    if (sent !== undefined) return { outcome: 'sent', provider: PROVIDER, message_id: sent.name, simulated: false };
    const unclear = errors.find((error) => error instanceof ProviderError && error.outcomeUnknown);
    if (errors.length > 0) throw unclear ?? errors[0];
    const causes = new Set(
      request.to
        .map((device) => answers.get(device))
        .flatMap((answer) => (answer !== undefined && 'dead' in answer ? [answer.dead] : [])),
    );
    return { outcome: 'failed', cause: [...causes].join(', '), simulated: false };
  };

  return {
    async send(request) {
      return ledger.once(
        notificationKey(request),
        '',
        () => sendAll(request),
        () => true,
      );
    },

    async lookUp(request) {
      const key = notificationKey(request);
      const claim = await ledger.find(key);
      if (claim?.reply !== undefined) return claim.reply;
      // `min`: the clock may have been set back since.
      const waitMs = claim === undefined ? 0 : Math.min(settleMs, claim.at + settleMs - now());
      if (waitMs > 0) throw new RetryLaterError('another attempt may be under way', waitMs);
      if (await ledger.release(key, now() - settleMs + 1)) {
        if (request.stopped !== undefined)
          await ledger.end(key, { outcome: 'failed', cause: request.stopped, simulated: false });
        return { outcome: 'never' };
      }
      throw new RetryLaterError('another attempt has just been made', AGAIN_MS);
    },
  };
}

/** FCM keeps a message for four weeks where its device is off, unless the message says for how long. */
function messageOf(request: SendRequest, now: number): object {
  const { gift_id, launch_url, until } = request;
  const seconds = secondsLeft(request, now);
  const end = until === undefined ? {} : { 'apns-expiration': String(Math.floor(Date.parse(until) / 1_000)) };
  return {
    notification: pushTextOf(request),
    data: { gift_id, launch_url },
    android: { notification: { tag: gift_id }, ...(seconds === undefined ? {} : { ttl: `${seconds}s` }) },
    apns: { headers: { 'apns-collapse-id': gift_id, ...end } },
    // FCM accepts only https links.
    webpush: {
      ...(seconds === undefined ? {} : { headers: { TTL: String(seconds) } }),
      notification: { tag: gift_id },
      ...(launch_url.startsWith('https:') ? { fcm_options: { link: launch_url } } : {}),
    },
  };
}

function failureOf(answer: unknown): FcmFailure {
  const error = (
    answer as
      | { readonly error?: { readonly status?: unknown; readonly message?: unknown; readonly details?: unknown } }
      | null
      | undefined
  )?.error;
  const details = Array.isArray(error?.details)
    ? (error.details as { readonly errorCode?: unknown; readonly fieldViolations?: unknown }[])
    : [];
  const ofFcm = details.find(({ errorCode }) => typeof errorCode === 'string')?.errorCode;
  const named = ofFcm ?? error?.status;
  const violations = details.flatMap(({ fieldViolations }) =>
    Array.isArray(fieldViolations) ? (fieldViolations as { readonly field?: unknown }[]) : [],
  );
  const text = typeof error?.message === 'string' ? error.message : '';
  return {
    ...(typeof named === 'string' ? { code: named } : {}),
    fault: faultIn(
      violations.map(({ field }) => field),
      text,
      ofFcm !== undefined,
    ),
  };
}

/** `readByFcm`: FCM itself read the request, which is therefore well-formed. */
function faultIn(fields: readonly unknown[], message: string, readByFcm: boolean): Fault {
  if (fields.includes('message.token') || /registration token/i.test(message)) return 'token';
  return fields.length > 0 || !readByFcm ? 'payload' : 'unsaid';
}

function refused(
  response: Response,
  { code, fault }: FcmFailure,
  now: () => number,
): DeviceAnswer | { readonly unsaid: string } {
  const { status, headers } = response;
  const where = `HTTP ${status}${code === undefined ? '' : `, ${code}`}`;
  if (code === 'UNREGISTERED') return { dead: 'device is not registered any more (FCM UNREGISTERED)' };
  if (code === 'SENDER_ID_MISMATCH') return { dead: 'device belongs to another sender (FCM SENDER_ID_MISMATCH)' };
  if (code === 'INVALID_ARGUMENT' && fault === 'token') return { dead: INVALID_TOKEN };
  if (code === 'INVALID_ARGUMENT' && fault === 'unsaid') return { unsaid: where };
  if (status === 429 || (status === 503 && headers.has('retry-after')))
    throw new RetryLaterError(
      status === 429 ? `FCM limits our requests (${where})` : `FCM is overloaded (${where})`,
      retryAfterMs(headers.get('retry-after'), now()) ?? RATE_LIMIT_PAUSE_MS,
    );
  if (status >= 500) throw new ProviderError(`FCM failed (${where})`, { outcomeUnknown: true });
  if (status === 401 || status === 403)
    throw new ProviderError(`FCM refuses our credentials (${where})`, { outcomeUnknown: false });
  // FCM's refusals have a code. Without one a proxy refused, which may let the request through later.
  if (code === undefined)
    throw new ProviderError(`a proxy refuses the request before FCM (${where})`, { outcomeUnknown: false });
  throw new RefusedError(`FCM refuses the request (${where})`);
}
