/** An engine can't be used with these settings; the message names the setting and the change to make. */
export class EngineError extends Error {
  override readonly name = 'EngineError';
  readonly setting: string;
  constructor(setting: string, message: string, cause?: unknown) {
    super(`${setting}: ${message}`, cause === undefined ? undefined : { cause });
    this.setting = setting;
  }
}

/** The server does not answer in time. A starting service retries, as long as its settings allow. */
export class NoAnswerError extends EngineError {}

/** Messages of Node and OpenSSL about unverified certificates, which gRPC's errors only quote. */
const UNVERIFIED =
  /self[- ]signed certificate(?: in certificate chain)?|unable to [a-z ]*certificate|(?:unsuitable|invalid)[a-z ]* certificate(?: purpose)?|certificate (?:has expired|is not yet valid|revoked|not trusted|rejected|signature failure|chain too long)|hostname\/IP does not match certificate's altnames/i;

/** Remedy text: where the certificate authority is set for clients that accept one in their address. */
export const AUTHORITY_IN_ADDRESS = 'by tlsCAFile=… in the address, or in NODE_EXTRA_CA_CERTS (files, PEM)';

/**
 * The error as a fault of the server's certificate; `undefined`: no certificate is the cause.
 * @param remedy text that says where the certificate authority is set
 */
export function certificateFault(error: unknown, setting: string, remedy: string): EngineError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const [reason] = UNVERIFIED.exec(cause.message) ?? [];
    if (reason !== undefined)
      return new EngineError(
        setting,
        `the server's certificate can't be verified (${reason}): name the authority that signed it ${remedy}, or give the server a certificate that is valid for the name in the address`,
        error,
      );
  }
  return undefined;
}
