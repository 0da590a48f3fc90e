// What is used here of a global that the types of Node leave to those of browsers.
declare namespace WebAssembly {
  interface Module {}
  interface Memory {
    readonly buffer: ArrayBuffer
  }
  var Memory: new (pages: { readonly initial: number; readonly maximum: number }) => Memory
  function compile(bytes: Uint8Array): Promise<Module>
}
