import assert from 'node:assert/strict'
import { codeOf } from '@svc/core'
import type { Json, WorkflowNode } from '@svc/core/contracts'
import { abortable, caseMaker, skipped } from './kit-case.ts'
import type { KitCase } from './kit.ts'
import { fitting, soundEnd } from './made-up-calls.ts'
import { play } from './node-play.ts'
import { assertDescribed, assertSettings } from './node-settings.ts'
import type { Thing } from './plugin-host.ts'

const PLAYS = 'answers made-up settings, or fails with a code'

/** What can be asked of a node whose author gives no samples. */
export function nodeCases({ name, options, permissions, open }: Thing<WorkflowNode>): KitCase[] {
  const make = caseMaker(open)
  const described = [
    make('says what it does, in plain data', async ({ item }) => assertDescribed(item)),
    make('has settings with a word on each, and none that every node has', async ({ item }) => assertSettings(item)),
  ]
  const isAlone = Object.keys(permissions).length === 0
  return [
    ...(options.nodes?.[name] ? [] : described),
    isAlone
      ? make(PLAYS, async ({ item }) => {
          for (const settings of fitting(item.settings, options) as { readonly [key: string]: Json }[]) {
            const what = JSON.stringify(settings).slice(0, 200)
            const { error } = await soundEnd(
              play(() => item, { settings }, { use: abortable().use }),
              what
            )
            assert.ok(error === undefined || codeOf(error) !== undefined, `${what}: failed without a code: ${String(error)}`)
          }
        })
      : skipped(PLAYS, '`nodes` (its permissions reach outside)'),
  ]
}
