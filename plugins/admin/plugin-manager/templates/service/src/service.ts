import { type CallContext, defineService } from '@svc/core'

/** The interface of the service. Arguments and results are plain data, because plugins can run in other processes. */
//js: /** @typedef {{ shout(text: string, ctx: import('@svc/core').CallContext): Promise<string> }} SampleWordService */
export interface SampleWordService {
  /** Returns the text in capital letters. */
  shout(text: string, ctx: CallContext): Promise<string>
}

/** The token by which plugins require the service. Raise `api` when you change a method. */
//js: /** @type {import('@svc/core').ServiceToken<SampleWordService>} */
export const SampleWord = defineService<SampleWordService>('sample_word', { api: 1, methods: { shout: 'call' } })

//js: /** @type {() => SampleWordService} */
export const createSampleWord = (): SampleWordService => ({
  async shout(text, { signal }) {
    signal.throwIfAborted()
    return text.toUpperCase()
  },
})
