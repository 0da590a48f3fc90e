import { type SvcError, svcError } from '@svc/core'
import { OPEN } from './settings.ts'

export const unavailable = (plugin: string, why: string, hint: string): SvcError =>
  svcError('ISOLATION_UNAVAILABLE', `${plugin} cannot run in an isolated process on this machine: ${why}`, {
    details: { plugin, reason: why },
    hint: `${hint}. Run "svc doctor" to see what this machine supports. To run the plugin without a sandbox, set isolation.without_sandbox: ${OPEN}`,
  })

export const pathMissing = (plugin: string, path: string): SvcError =>
  svcError('ISOLATION_PATH', `${plugin} declares write access to ${path}, which does not exist`, {
    details: { plugin, path },
    hint: 'Create the path, or remove it from the write permissions of the plugin',
  })

export const dependencyInvalid = (name: string, file: string): SvcError =>
  svcError('ISOLATION_DEPENDENCY', `the dependency ${JSON.stringify(name.slice(0, 200))} is not a valid package name`, {
    where: file,
    details: { name: name.slice(0, 200) },
    hint: 'Remove it from the dependencies of that package.json',
  })
