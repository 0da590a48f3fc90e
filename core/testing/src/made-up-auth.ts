import assert from 'node:assert/strict'
import type { AuthScheme } from '@svc/core/contracts'
import { assertHeaders } from './auth-kit.ts'
import { abortable, caseMaker, frozen } from './kit-case.ts'
import type { KitCase } from './kit.ts'
import { assertCode, fitting, soundEnd } from './made-up-calls.ts'
import type { Thing } from './plugin-host.ts'

/** What can be asked of a scheme whose author gives no credentials. */
export function authCases({ options, open }: Thing<AuthScheme>): KitCase[] {
  const make = caseMaker(open)
  return [
    make('names a challenge that a header can carry', async ({ item }) => {
      assert.match(item.challenge, /^[A-Za-z][\w-]*( [\x20-\x7e]+)?$/)
    }),
    make('declares the headers that it reads', async ({ item }) => assertHeaders(item)),
    make('takes no made-up credential, and ends each request', async ({ item }) => {
      for (const value of fitting({ type: 'string' }, options) as string[])
        for (const header of item.headers) {
          const request = frozen({ headers: { [header]: value }, address: '192.0.2.1' })
          const { value: taken, error } = await soundEnd(item.authenticate(request, abortable().use), `a made-up ${header}`)
          assert.equal(taken, undefined, `it takes ${JSON.stringify(value)} in ${header}`)
          if (error !== undefined) assertCode(error, ['AUTHENTICATION_FAILED'], `a made-up ${header}`)
        }
    }),
  ]
}
