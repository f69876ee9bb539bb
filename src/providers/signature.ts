/** Whether what comes from outside in a provider's name is the provider's. */

/** The message is not signed by the provider, or too long ago. */
export class SignatureError extends Error {
  override readonly name = 'SignatureError';
}
