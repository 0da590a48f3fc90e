import { svcError } from '@svc/core'

export const notWellFormed = () =>
  svcError('TEXT_INVALID', 'the text contains an unpaired surrogate, which is half a character and has no bytes', {
    hint: 'Remove the unpaired surrogate',
  })

export const base64Invalid = (why: string) =>
  svcError('BASE64_INVALID', `the text is not valid base64: ${why}`, {
    hint: 'Pass only the complete base64, without line breaks',
  })

export const base64Binary = (bytes: number, head: string) =>
  svcError('BASE64_BINARY', `the decoded data (${bytes} bytes, starting with hex ${head}) is not UTF-8 text`, {
    details: { bytes },
    hint: 'Decode only base64 of text with this tool',
  })
