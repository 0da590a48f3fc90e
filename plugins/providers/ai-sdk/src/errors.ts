import { type SvcError, svcError } from '@svc/core'
import { modelFailure } from '@svc/provider-http'
import { VERSIONS } from './sdk.ts'

/** A package that is not installed. */
export const packageMissing = (name: string): SvcError =>
  svcError('PROVIDER_PACKAGE', `there is no package "${name}" in this folder or in the svc home`, {
    details: { package: name },
    hint: `Install it in the project: npm install ${name}`,
  })

/** A package that cannot be imported. The message contains no paths. */
export const packageBroken = (name: string, message: string): SvcError =>
  svcError(
    'PROVIDER_PACKAGE',
    `the package "${name}" could not be imported: ${message.replaceAll(/(file:\/\/)?(\/[^\s'":,)]+)+\//g, '…/')}`,
    {
      details: { package: name },
      hint: `Reinstall it with its dependencies: npm install ${name}`,
    }
  )

/** A package without a recognizable provider factory. */
export const noFactory = (name: string, factories: readonly string[]): SvcError =>
  svcError('PROVIDER_PACKAGE', `the package "${name}" has no recognizable provider factory`, {
    details: { package: name, exports: factories },
    hint:
      factories.length === 0
        ? 'Name a package that is an AI SDK provider'
        : `Set "export" of its entry in "providers" to ${factories.slice(0, 8).join(' | ')} (a method can follow after a dot: createX.chat)`,
  })

/** An `export` that the package does not have, or that creates no models. */
export const badExport = (name: string, wanted: string, factories: readonly string[]): SvcError =>
  svcError('PROVIDER_PACKAGE', `"${wanted}" of the package "${name}" does not create language models`, {
    details: { package: name, exports: factories },
    hint:
      factories.length === 0
        ? 'Remove "export" from its entry in "providers"'
        : `Set "export" of its entry in "providers" to one of ${factories.slice(0, 8).join(', ')}, or remove it`,
  })

/** A package with an interface version that this plugin does not support. */
export const versionUnknown = (name: string, installed: string, version: unknown): SvcError => {
  const reported = typeof version === 'string' && version.length <= 20 ? version : 'none'
  return svcError(
    'PROVIDER_PACKAGE',
    `${name} ${installed} has version ${reported} of the AI SDK's provider interface, not ${VERSIONS.join(', ')}`,
    {
      details: { package: name, installed, version: reported, speaks: [...VERSIONS] },
      hint: hintOf(name, reported),
    }
  )
}

/** Majors of well-known packages that speak version 4. */
const MAJORS: Readonly<Record<string, number>> = {
  '@ai-sdk/amazon-bedrock': 5,
  '@ai-sdk/anthropic': 4,
  '@ai-sdk/azure': 4,
  '@ai-sdk/cohere': 4,
  '@ai-sdk/deepseek': 3,
  '@ai-sdk/google': 4,
  '@ai-sdk/groq': 4,
  '@ai-sdk/mistral': 4,
  '@ai-sdk/openai': 4,
  '@ai-sdk/openai-compatible': 3,
  '@ai-sdk/xai': 5,
}

function hintOf(name: string, version: string): string {
  const major = Object.hasOwn(MAJORS, name) ? MAJORS[name] : undefined
  if (major !== undefined) return `Install version ${major}: npm install ${name}@${major}`
  const built = 'which depends on @ai-sdk/provider 4, 3 or 2'
  return version === 'v1' || version === 'none'
    ? `Install a newer version, ${built}: npm install ${name}@latest`
    : `Install an older version, ${built}`
}

/** The factory of a package refuses its options. */
export const factoryFailed = (name: string, message: string): SvcError =>
  svcError('PROVIDER_PACKAGE', `the package "${name}" refuses its configuration: ${message}`, {
    details: { package: name },
    hint: 'Correct base_url, headers or options: svc passes them to the provider factory',
  })

/** A secret in the configuration. Keys belong in the environment or in a file. */
export const secretOption = (path: string): SvcError =>
  svcError('PROVIDER_CONFIG', `${path} looks like a secret; the configuration must not contain secrets`, {
    hint: 'Name the variable in api_key_env or the file in api_key_file. Put other secrets in the environment variables of the package',
  })

export const badTarget = (provider: string): SvcError =>
  modelFailure(
    provider,
    { kind: 'bad_request' },
    'its package called an address that is not http or https, or that contains credentials',
    `Check base_url, options and the environment variables of the package of providers.${provider}`
  )

/** A package that failed by itself. The caller sees only the name of the error. */
export const packageFailed = (provider: string, name: string): SvcError =>
  modelFailure(provider, { kind: 'bad_request' }, `its package failed: ${name}; the log has the details`)

/** A field of a request that the package does not apply. An answer without it would be another answer. */
export const fieldIgnored = (provider: string, field: string): SvcError =>
  modelFailure(
    provider,
    { kind: 'bad_request', requestOnly: true },
    `its package does not support ${field} for this model`,
    `Leave out ${field}, or use another model`
  )

/** An image at an address, for a package that only takes data. */
export const noAddresses = (provider: string): SvcError =>
  modelFailure(
    provider,
    { kind: 'bad_request', requestOnly: true },
    'its package does not take images at an address',
    'Send the data of the image'
  )

/** An image at something that is no address. */
export const badAddress = (provider: string): SvcError =>
  modelFailure(provider, { kind: 'bad_request', requestOnly: true }, 'the address of an image is not a valid URL')

export const noEmbeddings = (provider: string): SvcError =>
  modelFailure(provider, { kind: 'bad_request', requestOnly: true }, 'its package has no models for embeddings')

export const noKey = (provider: string): SvcError =>
  modelFailure(
    provider,
    { kind: 'authentication' },
    'its package found no key',
    `Set providers.${provider}.api_key_env to the variable that holds the key, or api_key_file to a file`
  )
