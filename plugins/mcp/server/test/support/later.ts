import { definePlugin, type SlotToken } from '@svc/core'
import type { Fixture } from '@svc/testing'

type Adding = <T>(slot: SlotToken<T>, name: string, item: T) => () => void

/** A plugin that adds later. */
export function later(): { readonly gift: Fixture; readonly add: Adding } {
  let add: Adding | undefined
  const use = definePlugin({ setup: scope => void (add = (slot, name, item) => scope.add(slot, name, item)) })
  return { gift: { name: 'test:later', use }, add: (slot, name, item) => add!(slot, name, item) }
}
