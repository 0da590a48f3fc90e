import { type SvcError, svcError } from '@svc/core'

const NAMED = 'A name is a letter, then up to 63 letters, digits, "_" and "-"'

/** The name is hostile: the message contains no control characters and at most 64 characters of it. */
const shown = (name: unknown) =>
  typeof name === 'string' ? JSON.stringify(name.slice(0, 64)).replaceAll(/[^\x20-\x7e]/g, '?') : `of type ${typeof name}`

export const nameInvalid = (name: unknown) =>
  svcError('SECRET_INVALID', `the name ${shown(name)} is not valid`, { details: { reason: 'name' }, hint: NAMED })

export const valueInvalid = (what: string, hint: string) =>
  svcError('SECRET_INVALID', `the value ${what}`, { details: { reason: 'value' }, hint })

export const secretUnknown = (name: string) =>
  svcError('SECRET_UNKNOWN', `there is no secret "${name}"`, {
    details: { name },
    hint: `Run \`svc secrets set ${name}\`, or name its variable or file under secrets.sources.${name} in the configuration`,
  })

export const sourceMissing = (name: string, what: string) =>
  svcError('SECRET_UNREADABLE', `the secret "${name}" has no value: ${what}`, {
    details: { name, reason: 'missing' },
    hint: `Provide the value, or change secrets.sources.${name} in the configuration`,
  })

export const secretUnreadable = (name: string, keyId: string, known: readonly string[]) =>
  svcError(
    'SECRET_UNREADABLE',
    known.includes(keyId)
      ? `the secret "${name}" was sealed with the key ${keyId}, but its record was changed since`
      : `the secret "${name}" was sealed with the key ${keyId}, and the configured ${known.length === 1 ? `key is ${known[0]}` : `keys are ${known.join(', ')}`}`,
    {
      details: { name, key_id: keyId },
      hint: known.includes(keyId)
        ? `Run \`svc secrets set ${name}\` to store the value again`
        : `Add the key ${keyId} after the current key, or run \`svc secrets set ${name}\` to store the value again`,
    }
  )

export const secretConfigured = (name: string, source: string) =>
  svcError('SECRET_CONFIGURED', `the value of the secret "${name}" comes from ${source}, as secrets.sources.${name} says`, {
    details: { name },
    hint: `Change the value there, or remove secrets.sources.${name} from the configuration`,
  })

const CREATE = 'openssl rand -base64 32 > secrets.key && chmod 600 secrets.key'

export const keyMissing = () =>
  svcError('SECRETS_KEY_MISSING', 'svc has no key to encrypt the secrets', {
    hint: `Create a key file (${CREATE}), and set secrets.key_file to its path. Or set SVC_SECRETS_KEY to the key. Do not keep the key with the backups of the store`,
  })

/** No part of the text: it can be most of a key. */
export const keyInvalid = (where: string, what: string) =>
  svcError('SECRETS_KEY_INVALID', `the key of the secrets is not valid: ${what}`, {
    where,
    hint: `Create a key: ${CREATE}. A key is 32 random bytes in Base64, or as 64 hexadecimal digits. With several keys, put the current one first, and separate them with commas or line breaks`,
  })

export const notReloaded = (url: string, problems: readonly SvcError[]) =>
  svcError(
    'NOT_RELOADED',
    `the secret is stored, but ${url} did not load it and serves with the former configuration:\n${problems.map(problem => problem.message).join('\n')}`,
    { hint: problems[0]?.hint ?? 'Fix the problem, then run `svc reload`' }
  )
