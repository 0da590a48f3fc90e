import { svcError } from '@svc/core'
import type { ConfigProblem } from '@svc/core/contracts'

export const providerNotFound = (provider: string, available: readonly string[]) =>
  svcError('PROVIDER_NOT_FOUND', `there is no provider "${provider.slice(0, 100)}"`, {
    details: { provider: provider.slice(0, 100), available },
    hint:
      available.length > 0 ? `Use one of: ${available.join(', ')}` : 'Configure a provider, for example providers: { local: {} }',
  })

export const modelNotFound = (provider: string | null, model: string, available: readonly string[]) =>
  svcError('MODEL_NOT_FOUND', `${provider ? `provider "${provider}" has` : 'there is'} no model "${model.slice(0, 200)}"`, {
    details: { provider, model: model.slice(0, 200), available },
    hint: `Use one of: ${available.slice(0, 20).join(', ')}`,
  })

export const modelsLate = (provider: string, ms: number) =>
  svcError('MODEL_FAILED', `provider "${provider}" did not list its models within ${ms} ms`, {
    details: { kind: 'timeout', retryable: true, provider },
  })

export const notAllowed = (field: string, value: string, allowed: readonly string[]) =>
  svcError('INVALID_VALUE', `there is no ${field} "${value.slice(0, 100)}"`, {
    details: { field, value: value.slice(0, 100), allowed, reason: 'unknown' },
    hint: `Use one of: ${allowed.join(', ')}`,
  })

/** The profile was written since the start of the server. */
export const profileWaits = (name: string, allowed: readonly string[]) => {
  const reason = 'it is in the profiles file, and waits for the next reload'
  return svcError('INVALID_VALUE', `the profile "${name}" is not loaded: ${reason} (svc reload, or POST /api/v1/reload)`, {
    details: { field: 'profile', value: name, allowed, reason },
    hint: 'Reload the server: svc reload',
  })
}

export const profilesMissing = (file: string) =>
  svcError('PROFILES_MISSING', `the file ${file} of selection.profiles_file does not exist`, {
    where: 'selection.profiles_file',
    hint: 'Create the file, correct the path, or remove selection.profiles_file to use profiles.yaml in the svc home',
  })

export const profilesInvalid = (message: string, where: string, hint: string) =>
  svcError('PROFILES_INVALID', message, { where, hint })

export const nameInvalid = () =>
  svcError(
    'INVALID_VALUE',
    'the name of a profile has 1 to 64 letters, digits, ".", "_" and "-", and begins with a letter or digit',
    {
      details: { field: 'name', reason: 'has 1 to 64 letters, digits, ".", "_" and "-"' },
    }
  )

export const draftInvalid = (problems: readonly ConfigProblem[]) =>
  svcError('CONFIG_DRAFT_INVALID', `the profiles would have problems: ${problems[0]?.message}`, {
    details: { problems },
    hint: problems[0]?.hint ?? 'Fix the values',
  })

export const fileLocked = (reason: string) =>
  svcError('CONFIG_LOCKED', `the profiles cannot be changed over HTTP: ${reason}`, {
    details: { reason },
    hint: 'Edit the profiles file on the machine of the server',
  })
