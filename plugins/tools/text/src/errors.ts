import { svcError } from '@svc/core'

export const notWellFormed = () =>
  svcError('TEXT_INVALID', 'the text holds half of a character (a surrogate without its other half), which has no bytes', {
    hint: 'take the half character out',
  })

export const base64Invalid = (why: string) =>
  svcError('BASE64_INVALID', `this is no base64: ${why}`, { hint: 'give the base64 alone, whole, without line breaks' })

export const base64Binary = (bytes: number, head: string) =>
  svcError('BASE64_BINARY', `this is base64 of ${bytes} bytes that are no UTF-8 text (they begin with ${head})`, {
    details: { bytes },
    hint: 'only text can be decoded here',
  })
