/**
 * Access tokens of a Google service account: RFC 7523;
 * https://developers.google.com/identity/protocols/oauth2/service-account
 */
import { SignJWT } from 'jose/jwt/sign';
import { importPKCS8 } from 'jose/key/import';
import { timeoutSignal } from '../../lib/world.js';
import { RetryLaterError } from '../../messages/workerFailure.js';
import { neverSent, ProviderError } from '../providerErrors.js';
import { retryAfterMs } from '../../lib/retryAfter.js';

export interface GoogleAccount {
  readonly clientEmail: string;
  /** Secret. A private key as PKCS #8 in PEM. */
  readonly privateKey: string;
  readonly tokenUrl: string;
}

interface TokenSource {
  /** An access token that is valid for at least another minute. @throws ProviderError; RetryLaterError */
  token(): Promise<string>;
  forget(token: string): void;
}

const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const ASSERTION_SECONDS = 3_600;
const SPARE_MS = 60_000;
const PAUSE_MS = 1_000;

export function googleTokens(
  { clientEmail, privateKey, tokenUrl }: GoogleAccount,
  scope: string,
  now: () => number,
  timeoutMs: number,
): TokenSource {
  let key: ReturnType<typeof importPKCS8> | undefined;
  let current: { readonly token: Promise<string>; until: number; value?: string } | undefined;

  const ask = async (): Promise<{ access_token: string; expires_in: number }> => {
    key ??= importPKCS8(privateKey, 'RS256');
    const issued = Math.floor(now() / 1000);
    const assertion = await new SignJWT({ scope })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
      .setIssuer(clientEmail)
      .setAudience(tokenUrl)
      .setIssuedAt(issued)
      .setExpirationTime(issued + ASSERTION_SECONDS)
      .sign(await key);
    const body = new URLSearchParams({ grant_type: GRANT, assertion });
    // A redirect would take the signed assertion, or another answer than Google's, from another address.
    const response = await fetch(tokenUrl, {
      method: 'POST',
      body,
      redirect: 'manual',
      signal: timeoutSignal(timeoutMs),
    });
    const answer: unknown = await response.json().catch(() => undefined);
    if (response.status === 429)
      throw new RetryLaterError(
        'Google limits our requests for tokens',
        retryAfterMs(response.headers.get('retry-after'), now()) ?? PAUSE_MS,
      );
    if (!response.ok || !isToken(answer))
      throw new ProviderError(`Google gives no token (HTTP ${response.status})`, { outcomeUnknown: false });
    return answer;
  };

  return {
    token() {
      if (current !== undefined && current.until > now()) return current.token;
      const pending = ask();
      const own: NonNullable<typeof current> = {
        until: Number.POSITIVE_INFINITY,
        token: pending.then(
          ({ access_token, expires_in }) => {
            own.until = now() + expires_in * 1000 - SPARE_MS;
            own.value = access_token;
            return access_token;
          },
          (error: unknown) => {
            if (current === own) current = undefined;
            if (error instanceof RetryLaterError || error instanceof ProviderError) throw error;
            // Without a token no message was sent, whatever happened.
            throw new ProviderError(
              neverSent(error) ? 'Google cannot be reached for a token' : 'Google did not answer with a token',
              { outcomeUnknown: false, cause: error },
            );
          },
        ),
      };
      current = own;
      return own.token;
    },
    forget(token) {
      if (current?.value === token) current = undefined;
    },
  };
}

function isToken(answer: unknown): answer is { access_token: string; expires_in: number } {
  return (
    answer instanceof Object &&
    'access_token' in answer &&
    typeof answer.access_token === 'string' &&
    'expires_in' in answer &&
    typeof answer.expires_in === 'number'
  );
}
