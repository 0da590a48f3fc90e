import type { Log, SlotView } from '@svc/core'
import type { Prompt, Resource } from '@svc/core/contracts'
import type { Calls } from './call.ts'
import type { Catalogue } from './catalogue.ts'
import type { Changes } from './changes.ts'
import type { Withheld } from './withheld.ts'

/** Who answers, as clients are told. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
}

/** What clients at one address find. */
export interface Published {
  readonly info: ServerInfo
  readonly catalogue: () => Catalogue
  readonly withheld: Withheld
  readonly calls: Calls
  /** Absent: none are published here. */
  readonly resources?: SlotView<Resource> | undefined
  readonly prompts?: SlotView<Prompt> | undefined
  readonly changes: Changes
  readonly log: Log
}
