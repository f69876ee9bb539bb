/** The message is not signed by the provider, or its signature is too old. */
export class SignatureError extends Error {
  override readonly name = 'SignatureError';
}
