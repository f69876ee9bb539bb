/**
 * FCM's HTTP v1 API and Google's token endpoint as far as they are used, from their public description
 * (https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages,
 * https://developers.google.com/identity/protocols/oauth2/service-account). Its ledger is what each device shows: a
 * message with the tag of another one replaces it.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { jwtVerify } from 'jose';
import { type Answered, type Requested, openStandIn, type StandIn } from './standIn.js';

/** A message as it came. */
export interface FcmMessage {
  readonly token: string;
  readonly notification: { readonly title: string; readonly body: string };
  readonly data: Readonly<Record<string, string>>;
  readonly android: { readonly notification: { readonly tag: string } };
  readonly apns: { readonly headers: Readonly<Record<string, string>> };
  readonly webpush: {
    readonly notification: { readonly tag: string };
    readonly fcm_options?: { readonly link: string };
  };
}

/** The stand-in and its ledger. */
export interface FcmServer extends StandIn {
  readonly projectId: string;
  readonly clientEmail: string;
  readonly privateKey: string;
  readonly tokenUrl: string;
  /** All messages taken, also those replaced. */
  readonly messages: FcmMessage[];
  /** What a device shows, by tag. */
  shown(device: string): ReadonlyMap<string, FcmMessage>;
  /** Access tokens given out. */
  readonly tokens: number;
  /** No access token counts any more. */
  revoke(): void;
}

const failure = (code: number, status: string, message: string, details: readonly object[] = []): Answered => ({
  status: code,
  body: { error: { code, message, status, details } },
});
const fcmFailure = (code: number, status: string, errorCode: string): Answered =>
  failure(code, status, `failed: ${errorCode}`, [
    { '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode },
  ]);

/**
 * Opens it. Devices `unregistered…`, `invalid…`, `foreign…` are refused as those are, and so are texts with half of a
 * character and messages that are too large. `now`: milliseconds since the epoch.
 */
export async function openFcmServer(now: () => number = Date.now): Promise<FcmServer> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const projectId = 'gifts-test';
  const clientEmail = 'sender@gifts-test.iam.gserviceaccount.com';
  const messages: FcmMessage[] = [];
  const devices = new Map<string, Map<string, FcmMessage>>();
  const valid = new Set<string>();
  let given = 0;

  const token = async (form: URLSearchParams): Promise<Answered> => {
    try {
      if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') throw new Error('another grant');
      const { payload } = await jwtVerify(form.get('assertion') ?? '', publicKey, {
        issuer: clientEmail,
        audience: `${standIn.url}/token`,
        algorithms: ['RS256'],
        maxTokenAge: '1h',
        currentDate: new Date(now()),
      });
      if (payload['scope'] !== 'https://www.googleapis.com/auth/firebase.messaging') throw new Error('another scope');
    } catch (error) {
      return { status: 400, body: { error: 'invalid_grant', error_description: String(error) } };
    }
    const access = `ya29.${randomBytes(16).toString('hex')}`;
    valid.add(access);
    given++;
    return { status: 200, body: { access_token: access, expires_in: 3599, token_type: 'Bearer' } };
  };

  const send = ({ headers, body }: Requested): Answered => {
    if (!valid.has(headers.authorization?.replace(/^Bearer /, '') ?? ''))
      return failure(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
    // Google's front refuses what is no request of the API, before FCM sees whom it is for.
    if (/\\ud[89a-f]/i.test(body))
      return failure(400, 'INVALID_ARGUMENT', 'Invalid JSON payload received. Invalid unicode.');
    const { message, validate_only } = JSON.parse(body) as { message: FcmMessage; validate_only?: boolean };
    if (body.length > 4_096 + 2_000) return fcmFailure(400, 'INVALID_ARGUMENT', 'INVALID_ARGUMENT');
    if (message.token.startsWith('unregistered')) return fcmFailure(404, 'NOT_FOUND', 'UNREGISTERED');
    if (message.token.startsWith('invalid')) return fcmFailure(400, 'INVALID_ARGUMENT', 'INVALID_ARGUMENT');
    if (message.token.startsWith('foreign')) return fcmFailure(403, 'PERMISSION_DENIED', 'SENDER_ID_MISMATCH');
    if (validate_only === true)
      return { status: 200, body: { name: `projects/${projectId}/messages/fake_message_id` } };
    messages.push(message);
    const device = devices.get(message.token) ?? new Map<string, FcmMessage>();
    devices.set(message.token, device.set(message.android.notification.tag, message));
    return { status: 200, body: { name: `projects/${projectId}/messages/0:${randomBytes(8).toString('hex')}` } };
  };

  const standIn = await openStandIn({
    handle: (requested) => {
      if (requested.path === '/token') return token(new URLSearchParams(requested.body));
      if (requested.path === `/v1/projects/${projectId}/messages:send` && requested.method === 'POST')
        return send(requested);
      return failure(404, 'NOT_FOUND', 'Requested entity was not found.');
    },
    error: failure(500, 'INTERNAL', 'An internal error has occurred.'),
    limited: fcmFailure(429, 'RESOURCE_EXHAUSTED', 'QUOTA_EXCEEDED'),
  });
  return Object.defineProperties(standIn, {
    tokens: { get: () => given },
    ...Object.fromEntries(
      Object.entries({
        projectId,
        clientEmail,
        privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
        tokenUrl: `${standIn.url}/token`,
        messages,
        shown: (device: string) => devices.get(device) ?? new Map<string, FcmMessage>(),
        revoke: () => valid.clear(),
      }).map(([name, value]) => [name, { value }]),
    ),
  }) as FcmServer;
}
