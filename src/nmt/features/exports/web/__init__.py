"""A web page that translates without a server: the model, onnxruntime-web, and our own beam search in JavaScript.

The folder `static` has the scripts behind the page (`nmt.page`): `api.js` asks a worker, which loads the files
(`files.js`), and translates (`translator.js`) with the model (`model.js`), the tokenizer (`tokenizer.js`) and the
search (`beam.js`). `service-worker.js` keeps everything in the browser.
"""
