import { SECRET, type SvcError } from '@svc/core'
import { entryProblems, readKey } from '@svc/provider-http'
import type { AiSdkConfig } from './config.ts'
import { packageMissing, secretOption } from './errors.ts'
import { findPackage, type Packages } from './package.ts'

/** What the schema cannot tell: secrets where none may stand, a package that is not there, a key that is missing. */
export async function checkConfig(name: string, config: AiSdkConfig, places: Packages['places']): Promise<readonly SvcError[]> {
  const secret = secretIn(config.options, 'options') ?? secretIn(config.provider_options, 'provider_options')
  return [
    ...(secret === undefined ? [] : [secretOption(secret)]),
    ...(findPackage(config.package, places) ? [] : [packageMissing(config.package)]),
    ...(await entryProblems(readKey(config, { provider: name, required: false }))),
  ]
}

/** The path of what has a secret's name and a value. */
function secretIn(value: unknown, path: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, inner] of Object.entries(value)) {
    const found = isSecretValue(name, inner) ? `${path}.${name}` : secretIn(inner, `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

const isSecretValue = (name: string, value: unknown) =>
  typeof value === 'string' && (SECRET.test(name) || /[a-z](Key|Token|Secret|Password)$/.test(name))
