import { type SvcError, svcError } from '@svc/core'
import { OPEN } from './settings.ts'

export const unavailable = (plugin: string, why: string, hint: string): SvcError =>
  svcError('ISOLATION_UNAVAILABLE', `${plugin} is to run in a process of its own, which this machine cannot hold: ${why}`, {
    details: { plugin, reason: why },
    hint: `${hint}; "svc doctor" shows what this machine can hold. To run it all the same: isolation.without_sandbox: ${OPEN}`,
  })

export const pathMissing = (plugin: string, path: string): SvcError =>
  svcError('ISOLATION_PATH', `${plugin} may write to ${path}, which is not there`, {
    details: { plugin, path },
    hint: 'create it, or take it out of what the plugin may write',
  })

export const dependencyInvalid = (name: string, file: string): SvcError =>
  svcError(
    'ISOLATION_DEPENDENCY',
    `a package names ${JSON.stringify(name.slice(0, 200))} as a dependency, which is no package name`,
    {
      where: file,
      details: { name: name.slice(0, 200) },
      hint: 'take it out of the dependencies of that package.json',
    }
  )
