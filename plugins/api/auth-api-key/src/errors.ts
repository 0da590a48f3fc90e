import { svcError } from '@svc/core'

const DISABLE =
  'or disable the plugin: plugins: [{ use: "@svc/plugin-auth-api-key", enabled: false }], or set server.auth.enabled to false'

export const keyMissing = (variable: string) =>
  svcError('API_KEY_MISSING', `authentication is on, but the environment variable ${variable} is unset or empty`, {
    where: 'server.auth.api_key_env',
    details: { variable },
    hint: `Set ${variable} to the key, set server.auth.api_key_env to the name of another variable, ${DISABLE}`,
  })

export const keyUnusable = (variable: string, longest: number) =>
  svcError(
    'API_KEY_UNUSABLE',
    `the key in the environment variable ${variable} is too long or has characters that a header cannot carry`,
    {
      where: 'server.auth.api_key_env',
      details: { variable },
      hint: `Set ${variable} to at most ${longest} visible ASCII characters without spaces`,
    }
  )

/** Not an error: the server starts. The texts contain neither the key nor its length. */
export const keyGuessable = (variable: string, short: number) => ({
  message: `the API key in ${variable} can be guessed: it has fewer than ${short} characters, not counting well-known words and repetitions`,
  hint: `Set ${variable} to a long random value (openssl rand -hex 32)`,
})
