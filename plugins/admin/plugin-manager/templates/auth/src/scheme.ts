import { hash, timingSafeEqual } from 'node:crypto'
import { svcError } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'

/** Who holds the key, and what it may do. */
const HOLDER = { id: 'sample-word:holder', scopes: ['read', 'chat'] }
/** No key is longer, so that what is longer need not be hashed to be refused. */
const LONGEST = 4096

/** Digests are equal in length: compared in constant time, they tell nothing of the key. */
//js: /** @type {(text: string) => Buffer} */
const digestOf = (text: string) => hash('sha256', text, 'buffer')

// a refusal says nothing of what was sent
const refused = () => svcError('AUTHENTICATION_FAILED', 'the key is not the one that was given out')

//js: /** @type {(key: string) => import('@svc/core/contracts').AuthScheme} */
export const createSampleWord = (key: string): AuthScheme => ({
  // all that `authenticate` gets of a request; routes never see them
  headers: ['x-sample-word'],
  challenge: 'SampleWord header="x-sample-word"',
  shown: { type: 'apiKey', in: 'header', name: 'x-sample-word', description: 'The key of the server.' },
  // called once before the server opens, where it will be asked: what it throws fails the start
  async prepare() {
    if (key === '')
      throw svcError('SAMPLE_WORD_KEY_MISSING', 'the environment variable SAMPLE_WORD_KEY is not set or empty', {
        hint: 'put the key into SAMPLE_WORD_KEY, or switch the plugin off: svc plugins disable, or enabled: false in "plugins"',
      })
  },
  // `undefined`: the request carries no credential of this kind, another scheme may know it
  async authenticate({ headers }, { signal }) {
    const given = headers['x-sample-word']
    if (given === undefined) return undefined
    signal.throwIfAborted()
    if (key === '' || given.length > LONGEST || !timingSafeEqual(digestOf(given), digestOf(key))) throw refused()
    return { ...HOLDER, scopes: [...HOLDER.scopes] }
  },
})
