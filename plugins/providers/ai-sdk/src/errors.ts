import { type SvcError, svcError } from '@svc/core'
import { modelFailure } from '@svc/provider-http'
import { VERSIONS } from './sdk.ts'

/** A package that is not there. */
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
      hint: `install it anew, with what it needs: npm install ${name}`,
    }
  )

/** A package without a recognizable provider factory. */
export const noFactory = (name: string, found: readonly string[]): SvcError =>
  svcError('PROVIDER_PACKAGE', `in the package "${name}" no export is recognizable as a provider factory`, {
    details: { package: name, exports: found },
    hint:
      found.length === 0
        ? 'name a package that is an AI SDK provider'
        : `name it: export: ${found.slice(0, 8).join(' | ')} (a method of the provider after a dot: createX.chat)`,
  })

/** An `export` that the package has not, or that makes no models. */
export const badExport = (name: string, wanted: string, found: readonly string[]): SvcError =>
  svcError('PROVIDER_PACKAGE', `"${wanted}" of the package "${name}" makes no language models`, {
    details: { package: name, exports: found },
    hint:
      found.length === 0
        ? 'leave out export'
        : `its makers are ${found.slice(0, 8).join(', ')}; leave out export to have it found`,
  })

/** A package whose interface this plugin does not speak. */
export const versionUnknown = (name: string, installed: string, version: unknown): SvcError => {
  const said = typeof version === 'string' && version.length <= 20 ? version : 'none'
  return svcError(
    'PROVIDER_PACKAGE',
    `${name} ${installed} speaks version ${said} of the AI SDK's provider interface, not ${VERSIONS.join(', ')}`,
    {
      details: { package: name, installed, version: said, speaks: [...VERSIONS] },
      hint: hintOf(name, said),
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
  if (major !== undefined) return `install version ${major}: npm install ${name}@${major}`
  const built = 'one that depends on @ai-sdk/provider 4, 3 or 2'
  return version === 'v1' || version === 'none'
    ? `install a newer version, ${built}: npm install ${name}@latest`
    : `install an older version, ${built}`
}

/** The factory itself refuses its options. */
export const factoryFailed = (name: string, message: string): SvcError =>
  svcError('PROVIDER_PACKAGE', `the package "${name}" refuses its configuration: ${message}`, {
    details: { package: name },
    hint: 'fix base_url, headers or options: they are handed to its maker of providers',
  })

/** Keys stand in the environment or in a file, nowhere else. */
export const secretOption = (path: string): SvcError =>
  svcError('PROVIDER_CONFIG', `${path} looks like a secret, and svc accepts no secrets in the configuration`, {
    hint: 'Set api_key_env to the name of an environment variable, or api_key_file to a file. For other secrets, set the environment variables that the package reads',
  })

export const badTarget = (provider: string): SvcError =>
  modelFailure(
    provider,
    { kind: 'bad_request' },
    'its package calls an address that is not http or https, or has credentials in it',
    `check what the package of providers.${provider} makes its address from: base_url, options, environment variables`
  )

/** A package that failed by itself. The caller sees only the name of the error. */
export const packageFailed = (provider: string, name: string): SvcError =>
  modelFailure(provider, { kind: 'bad_request' }, `its package failed: ${name}; the log has its words`)

export const noKey = (provider: string): SvcError =>
  modelFailure(
    provider,
    { kind: 'authentication' },
    'its package finds no key',
    `name the variable that holds it: providers.${provider}.api_key_env, or a file: api_key_file`
  )
