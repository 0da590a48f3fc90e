import type { ReasoningPart } from '@svc/core/contracts'
import { mergeMetadata, plainMetadata } from './provider-data.ts'
import type { Metadata } from './sdk.ts'

type Emit = (piece: ReasoningPart) => void

interface Block {
  text: string
  data: Metadata | undefined
  ended: boolean
}

/**
 * The reasoning of an answer, block after block: the text of a block as it comes, then a piece without text that has the data, if there is any. Blocks may
 * lie in each other; a later one waits until the one before it has ended.
 */
export class Reasoning {
  readonly #blocks = new Map<string, Block>()

  /** Something about a block: that it begins, more of its text, that it ends; each may bring data. */
  take(
    id: string,
    part: { readonly delta?: string; readonly providerMetadata?: Metadata | undefined },
    ended: boolean,
    emit: Emit
  ): void {
    const block = this.#blocks.get(id) ?? { text: '', data: undefined, ended: false }
    this.#blocks.set(id, block)
    block.text += part.delta ?? ''
    block.data = mergeMetadata(block.data, plainMetadata(part.providerMetadata))
    block.ended = ended
    this.#tell(emit)
  }

  end(emit: Emit): void {
    for (const block of this.#blocks.values()) block.ended = true
    this.#tell(emit)
  }

  #tell(emit: Emit): void {
    for (const [id, block] of this.#blocks) {
      if (block.text !== '') emit({ type: 'reasoning', text: block.text })
      block.text = ''
      if (!block.ended) return
      if (block.data !== undefined) emit({ type: 'reasoning', text: '', providerData: block.data })
      this.#blocks.delete(id)
    }
  }
}
