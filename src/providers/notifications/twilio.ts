/**
 * SMS by Twilio, which knows no idempotency keys: a message is claimed first. An unknown outcome is looked up among the
 * messages to the number, by the gift's link in their text.
 */
import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import twilio from 'twilio';
import { timeoutSignal } from '../../lib/world.js';
import { openCircuitBreaker, type RealProviderDeps } from '../circuitBreaker.js';
import { type SendReply, notificationKey, secondsLeft } from '../../messages/notifications.js';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { neverSent, RefusedError, ProviderError } from '../providerErrors.js';
import { retryAfterMs } from '../../lib/retryAfter.js';
import { FAILED, callbackFor } from './callbacks.js';
import type { Ledger } from './ledger.js';
import type { NotificationProvider } from './provider.js';
import type { SmsLimits } from './smsLimits.js';
import { textOf } from './text.js';

/** Settings of Twilio. Exactly one of `from` and `messagingServiceSid` must be set. */
export interface TwilioSettings {
  readonly accountSid: string;
  /** Secret. */
  readonly authToken: string;
  /** The sender: a number in E.164, or an alphanumeric name. */
  readonly from?: string;
  readonly messagingServiceSid?: string;
  /** Scheme, host and port; default Twilio's. */
  readonly apiUrl?: string;
}

export interface TwilioDeps extends RealProviderDeps {
  readonly ledger: Ledger;
  readonly limits: SmsLimits;
  /** Milliseconds until a sent message is listed at the latest; default a minute. More than `timeoutMs`. */
  readonly settleMs?: number;
  /** URL for status callbacks; absent: none are requested. */
  readonly callbackUrl?: string;
}

const PROVIDER = 'twilio';
const TIMEOUT_MS = 10_000;
const SETTLE_MS = 60_000;
const RATE_LIMIT_PAUSE_MS = 1_000;
/** Seconds for which Twilio may be asked to try to deliver a message; without a request it is the most. */
const VALID_S = { least: 5, most: 36_000 };
const SOCKETS = 64;
/** Statuses of a proxy that passed the request on and did not wait for its end. */
const ABANDONED: ReadonlySet<number> = new Set([408, 499]);
const LISTED = 400;
const PAGE = 100;
/** Milliseconds by which our clock and Twilio's may differ. */
const CLOCKS_MS = 5 * 60_000;

/** Faults of the receiver's number (https://www.twilio.com/docs/api/errors). All other refusals are ours. */
const NUMBER_FAULTS: ReadonlyMap<number, string> = new Map([
  [21211, 'invalid number'],
  [21214, 'number cannot be reached'],
  [21217, 'invalid number'],
  [21265, 'number is a short code'],
  [21408, 'no messages to this region'],
  [21610, 'receiver has unsubscribed'],
  [21612, 'number cannot be reached'],
  [21614, 'not a mobile number'],
  [21635, 'number is a landline'],
]);

export function twilioSms(settings: TwilioSettings, deps: TwilioDeps): NotificationProvider {
  const { logger, ledger, limits, now, timeoutMs = TIMEOUT_MS, settleMs = SETTLE_MS, callbackUrl } = deps;
  const { accountSid, authToken, from, messagingServiceSid, apiUrl } = settings;
  const client = twilio(accountSid, authToken, { httpClient: httpClient(apiUrl, timeoutMs, now) });
  const breaker = openCircuitBreaker(PROVIDER, logger, now, deps.circuitBreaker);
  const call = <T>(request: () => Promise<T>): Promise<T> => breaker.run(() => request().catch(failed));
  const sender = messagingServiceSid === undefined ? { from: from ?? '' } : { messagingServiceSid };

  return {
    async send(request) {
      const { transaction_id, buyer_id, to, expires_on } = request;
      const key = notificationKey(request);
      const number = to[0] ?? '';
      // A message that is sent already counts under no limit.
      const lookedAt = now();
      const claim = await ledger.find(key);
      if (claim?.reply !== undefined) return claim.reply;
      try {
        const counted = { transactionId: transaction_id, number };
        await limits.admit(expires_on === undefined ? { ...counted, buyerId: buyer_id } : counted);
      } catch (error) {
        // Without this record a restart costs a look-up at Twilio, at worst one by a person.
        if (claim === undefined && error instanceof RetryLaterError)
          await ledger.held(key, lookedAt).catch(() => undefined);
        throw error;
      }
      return ledger.once(
        key,
        number,
        async () => {
          const callback = callbackUrl === undefined ? {} : { statusCallback: callbackFor(callbackUrl, request) };
          const seconds = secondsLeft(request, now());
          const validity =
            seconds === undefined ? {} : { validityPeriod: Math.min(VALID_S.most, Math.max(VALID_S.least, seconds)) };
          try {
            return sent(
              await call(async () =>
                sidIn(
                  await client.messages.create({
                    to: number,
                    body: textOf(request),
                    ...sender,
                    ...callback,
                    ...validity,
                  }),
                ),
              ),
            );
          } catch (error) {
            if (error instanceof NumberFault) return failure(error.message);
            throw error;
          }
        },
        (error) =>
          error instanceof RetryLaterError ||
          error instanceof RefusedError ||
          (error instanceof ProviderError && !error.outcomeUnknown),
      );
    },

    async lookUp(request) {
      const { started_at, to, launch_url, stopped } = request;
      const key = notificationKey(request);
      const claim = await ledger.find(key);
      if (claim?.reply !== undefined) return claim.reply;
      const started = Date.parse(started_at);
      if (await ledger.neverClaimed(key, started)) {
        if (stopped !== undefined) await ledger.end(key, failure(stopped));
        return { outcome: 'never' };
      }
      // The claim's number comes first, since the receiver's may have changed.
      const number = claim === undefined || claim.to === '' ? to[0] : claim.to;
      if (number === undefined) return { outcome: 'unknown' };
      const listed = await call(() => client.messages.list({ to: number, limit: LISTED, pageSize: PAGE }));
      const oldest = started - CLOCKS_MS;
      const found = listed.find(
        ({ body, dateCreated }) => dateCreated.getTime() >= oldest && body.includes(launch_url),
      );
      if (found !== undefined)
        return FAILED.has(found.status)
          ? failure(`not delivered (Twilio ${found.errorCode ?? found.status})`)
          : sent(found.sid);
      // The message may still be on its way to Twilio. `min`: the clock may have been set back since.
      const waitMs = Math.min(settleMs, (claim?.at ?? started) + settleMs - now());
      if (waitMs > 0) throw new RetryLaterError('Twilio does not list the message yet', waitMs);
      // A missing entry is no proof: accounts may hide texts, numbers may be written differently, lists lag behind.
      return { outcome: 'unknown' };
    },
  };
}

/** Sends all requests to `apiUrl`, and reads 429 before the library drops its headers. */
function httpClient(apiUrl: string | undefined, timeout: number, now: () => number): twilio.RequestClient {
  const base = new twilio.RequestClient({ timeout, keepAlive: true, maxSockets: SOCKETS, maxTotalSockets: SOCKETS });
  // The library's timeout limits only silence: an answer that comes byte by byte would hold its caller for ever.
  base.axios.interceptors.request.use((config) =>
    Object.assign(config, { signal: timeoutSignal(timeout), transport: { request: watchedRequest } }),
  );
  const request = base.request.bind(base);
  base.request = async (options) => {
    const { pathname, search } = new URL(options.uri);
    const response = await request(apiUrl === undefined ? options : { ...options, uri: apiUrl + pathname + search });
    if (response.statusCode === 429) {
      const headers = response.headers as Readonly<Record<string, string | undefined>>;
      throw new RetryLaterError(
        'Twilio limits our requests',
        retryAfterMs(headers['retry-after'], now()) ?? RATE_LIMIT_PAUSE_MS,
      );
    }
    return response;
  };
  return base;
}

/** Requests of which nothing has left this process: they have no connection yet, or never had one. */
const unsent = new WeakSet<object>();

function watchedRequest(options: RequestOptions, answered: (answer: IncomingMessage) => void): ClientRequest {
  const request = options.protocol === 'http:' ? http.request(options, answered) : https.request(options, answered);
  unsent.add(request);
  const connected = (): void => void unsent.delete(request);
  request.once('socket', (socket: Socket) => (socket.connecting ? socket.once('connect', connected) : connected()));
  return request;
}

/** Whether the request of an error may have left this process. The library's errors name their request. */
function hasLeft(error: unknown): boolean {
  const request = error instanceof Error && 'request' in error ? error.request : undefined;
  return !(neverSent(error) || (request instanceof Object && unsent.has(request)));
}

/** A proxy may answer in Twilio's place: only a message id proves that Twilio has the message. */
function sidIn({ sid }: { readonly sid: unknown }): string {
  if (typeof sid !== 'string' || sid === '')
    throw new ProviderError('Twilio answered with something else', { outcomeUnknown: true });
  return sid;
}

class NumberFault extends Error {
  override readonly name = 'NumberFault';
}

/** The library's errors and Twilio's messages hold phone numbers, which must not be logged. */
function failed(error: unknown): never {
  if (error instanceof RetryLaterError || error instanceof ProviderError) throw error;
  if (!(error instanceof twilio.RestException))
    throw new ProviderError('Twilio did not answer', { outcomeUnknown: hasLeft(error), cause: error });
  const { status, code } = error;
  const where = `HTTP ${status}${code === undefined ? '' : `, code ${code}`}`;
  const fault = code === undefined ? undefined : NUMBER_FAULTS.get(code);
  if (fault !== undefined) throw new NumberFault(`${fault} (Twilio ${code})`);
  if (status === 401 || status === 403)
    throw new ProviderError(`Twilio refuses our credentials (${where})`, { outcomeUnknown: false });
  if (status >= 500) throw new ProviderError(`Twilio failed (${where})`, { outcomeUnknown: true });
  // Twilio's refusals have a code. Without one a proxy refused, or passed the request on.
  if (code === undefined)
    throw new ProviderError(`a proxy refuses the request (${where})`, {
      outcomeUnknown: ABANDONED.has(status),
    });
  throw new RefusedError(`Twilio refuses the request (${where})`);
}

function sent(sid: string): SendReply {
  return { outcome: 'sent', provider: PROVIDER, message_id: sid, simulated: false };
}

function failure(cause: string): SendReply {
  return { outcome: 'failed', cause, simulated: false };
}
