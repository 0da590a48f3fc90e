import { svcError } from '@svc/core'

const TAKE_OUT =
  'or take the API key out: plugins: [{ use: "@svc/plugin-auth-api-key", enabled: false }], or set server.auth.enabled to false'

export const keyMissing = (variable: string) =>
  svcError('API_KEY_MISSING', `authentication is on, and the environment variable ${variable} is not set or empty`, {
    where: 'server.auth.api_key_env',
    details: { variable },
    hint: `put the key into ${variable}, name the variable that has it in server.auth.api_key_env, ${TAKE_OUT}`,
  })

export const keyUnusable = (variable: string, longest: number) =>
  svcError('API_KEY_UNUSABLE', `the environment variable ${variable} holds no key that a header can carry`, {
    where: 'server.auth.api_key_env',
    details: { variable },
    hint: `put a key of visible ASCII characters without blanks into it, at most ${longest} of them`,
  })

export const keyRefused = () => svcError('AUTHENTICATION_FAILED', 'the API key is not valid')

export const keyMisplaced = () =>
  svcError('AUTHENTICATION_FAILED', 'this is the API key: it goes into the header X-API-Key, Authorization: Bearer is for tokens')

/** Not an error: the server starts. The texts contain neither the key nor its length. */
export const keyGuessable = (variable: string, short: number) => ({
  message: `the API key in ${variable} can be guessed: it has fewer than ${short} characters, not counting well-known words and repetitions`,
  hint: `set ${variable} to a long random value (openssl rand -hex 32)`,
})
