import { svcError } from '@svc/core'

const TAKE_OUT =
  'or take the API key out: plugins: [{ use: "@svc/plugin-auth-api-key", enabled: false }], or set server.auth.enabled to false'

export const keyMissing = (variable: string) =>
  svcError('API_KEY_MISSING', `authentication is on, and the environment variable ${variable} is not set or empty`, {
    where: 'server.auth.api_key_env',
    details: { variable },
    mend: `put the key into ${variable}, name the variable that has it in server.auth.api_key_env, ${TAKE_OUT}`,
  })

export const keyUnusable = (variable: string, longest: number) =>
  svcError('API_KEY_UNUSABLE', `the environment variable ${variable} holds no key that a header can carry`, {
    where: 'server.auth.api_key_env',
    details: { variable },
    mend: `put a key of visible ASCII characters without blanks into it, at most ${longest} of them`,
  })

export const keyRefused = () => svcError('AUTHENTICATION_FAILED', 'the API key is not valid')

/** Not an error: the server starts. Neither the key nor its length is told. */
export const shortKey = (variable: string, short: number) =>
  `the API key in ${variable} has fewer than ${short} characters and can be guessed: put a longer one into it (openssl rand -hex 32)`
