import { fileURLToPath } from 'node:url'
import type { LogOptions } from '@svc/core'
import type { Answerer } from '@svc/testing'
import { openRig } from './rig.ts'
import type { Script } from './scripted.ts'

/** The module of this name beside this file, as an entry names it. */
export const moduleAt = (name: string) => fileURLToPath(new URL(name, import.meta.url))

const nobody: Answerer = (_, reply) => reply.json(599, {})

/** A provider whose package does what the script says. */
export const openScripted = (script: Script, entry: object = {}, log?: LogOptions) =>
  openRig({ entry: { package: moduleAt('./scripted.ts') } }, nobody, { options: script, ...entry }, log)
